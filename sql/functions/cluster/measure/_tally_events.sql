-- odc._tally_events: add these events to the tally.
-- Arguments  p_ids  final events; each event is passed only once, ever
-- Locks      tally and tally_histogram rows, in the order of their keys
create or replace function odc._tally_events(p_ids bigint[])
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    with seen as materialized (
        select e.id, e.xid, e.at, e.kind, e.job_id, e.detail, (e.detail ->> 'attempt')::integer as attempt,
               j.kind as job_kind, j.user_name, a.name as account, j.partition_ids[1] as named_id, j.array_tasks
          from event as e
          left join job as j on j.id = e.job_id
          left join account as a on a.id = j.account_id
         where e.id = any (p_ids)
           and e.kind in ('submitted', 'started', 'ended', 'requeued', 'active', 'orphan', 'slipped')
    ), ran as materialized (
        -- Where an attempt ran, and when it became eligible: for a requeued attempt, only the past has that.
        select s.*, w.eligible_at, _partition_name(coalesce(w.partition_id, s.named_id)) as partition
          from seen as s
          left join lateral (
               select r.partition_id, r.eligible_at, 1 as n from running as r where r.job_id = s.job_id and r.attempt = s.attempt
                union all
               select j.partition_id, j.eligible_at, 2 from job as j
                where j.id = s.job_id and j.attempt = s.attempt and j.partition_id is not null
                union all
               (select q.partition_id, q.eligible_at, 3 from running_past as q
                 where q.job_id = s.job_id and q.attempt = s.attempt and not q.past_absent order by q.past_id desc limit 1)
                order by n limit 1) as w on s.attempt is not null
    ), held as (
        -- As counted while it ran: by each member's node, and by the node's type at that time.
        select s.user_name, s.account, h.gpu_type, sum(h.gpus * _attempt_ms(t.started_at, t.ended_at, t.ended_at)) as gpu_ms
          from seen as s
          join attempt as t on t.job_id = s.job_id and t.attempt = s.attempt
         cross join lateral _held_gpus(s.job_id, s.attempt, t.started_at, s.at) as h
         where s.kind in ('ended', 'requeued')
         group by s.user_name, s.account, h.gpu_type
    ), one as (
        select 'odcd_jobs_submitted_total' as metric, array[r.partition] as labels, coalesce((r.detail ->> 'tasks')::bigint, 1) as value
          from ran as r where r.kind = 'submitted'
         union all
        select 'odcd_jobs_started_total', array[r.partition], 1 from ran as r where r.kind = 'started'
         union all
        select 'odcd_jobs_finished_total', array[r.detail ->> 'state', r.partition, r.account],
               case when r.attempt is null then coalesce(_task_count(_tasks_of(r.array_tasks)), 1) else 1 end
          from ran as r where r.kind = 'ended'
         union all
        select 'odcd_job_requeues_total', array[r.partition, coalesce(r.detail ->> 'reason', 'Requeued')], 1
          from ran as r where r.kind = 'requeued'
         union all
        select 'odcd_job_preemptions_total', array[r.partition, coalesce(r.detail -> 'preemption' ->> 'qos', '')], 1
          from ran as r where r.kind in ('ended', 'requeued') and r.detail ? 'preemption'
         union all
        select 'odcd_gpu_seconds_total', array[h.user_name, h.account, h.gpu_type], h.gpu_ms from held as h where h.gpu_ms > 0
         union all
        select 'odcd_orphans_found_total', array['pod'], 1 from ran as r where r.kind = 'orphan'
         union all
        select 'odcd_planned_starts_moved_total', array[r.detail ->> 'cause'], 1 from ran as r where r.kind = 'slipped'
         union all
        -- It started as planned, and its planned start never moved to a later time since it was last queued.
        select 'odcd_planned_starts_kept_total', '{}', 1
          from ran as r
         where r.kind = 'started'
           and exists (select from planned_past as q
                        where q.job_id = r.job_id and q.past_xid = r.xid and not q.past_absent and q.planned_start_at is not null)
           and not exists (select from event as x
                            where x.job_id = r.job_id and x.kind = 'slipped' and x.id < r.id
                              and x.id > coalesce((select max(y.id) from event as y
                                                    where y.job_id = r.job_id and y.kind = 'requeued' and y.id < r.id), 0))
    ), counted as (
        insert into tally as t (metric, labels, value)
        select o.metric, o.labels, sum(o.value)::bigint
          from one as o
         where array_position(o.labels, null) is null
         group by o.metric, o.labels
         order by o.metric, o.labels
            on conflict (metric, labels) do update set value = t.value + excluded.value
    ), span as (
        select 'odcd_job_queue_wait_seconds' as metric, array[r.partition] as labels,
               greatest(0, date_part('epoch', r.at - r.eligible_at)) as s
          from ran as r where r.kind = 'started' and r.eligible_at is not null
         union all
        select 'odcd_reservation_phase_seconds', array[p.phase], p.took_s
          from ran as r
          left join running as u on u.job_id = r.job_id
          left join job as j on j.id = r.job_id
         -- Its attempt is the running or the last one: a reservation that was active is never requeued.
         cross join lateral _phase_spans(r.job_id, coalesce(u.attempt, j.attempt), coalesce(u.started_at, j.started_at), r.kind = 'ended') as p
         where r.job_kind = 'reservation' and r.kind in ('active', 'ended')
    ), placed as (
        select s.metric, s.labels, s.s, b.bounds,
               (select count(*) from unnest(b.bounds) as u where u < s.s) + 1 as place
          from span as s cross join lateral (select _tally_bounds(s.metric) as bounds) as b
    )
    insert into tally_histogram as h (metric, labels, counts, sum_ms)
    select p.metric, p.labels,
           array(select count(*) filter (where q.place = g.n)
                   from generate_series(1, cardinality(p.bounds) + 1) as g (n)
                   left join placed as q on q.metric = p.metric and q.labels = p.labels and q.place = g.n
                  group by g.n order by g.n),
           round(sum(p.s) * 1000)::bigint
      from placed as p
     group by p.metric, p.labels, p.bounds
     order by p.metric, p.labels
        on conflict (metric, labels) do update
       set counts = array(select a + b from unnest(h.counts, excluded.counts) with ordinality as u (a, b, n) order by n),
           sum_ms = h.sum_ms + excluded.sum_ms;
end;
$$;
