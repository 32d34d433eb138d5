-- odc._tell_slips: record an event `slipped` for every job whose planned start this pass delays or removes, with the
-- cause: a change since the last pass (a node, a booking, a job, a policy or limit; by its event); else a running job
-- over its limit on the job's nodes; else the job that came before it in the order, by preemption or not. Called before
-- the new plan is stored.
-- Arguments  p_head_jobs, p_head_ats  the planned starts of this pass;  p_started  the jobs that it starts
create or replace function odc._tell_slips(
    p_now timestamptz, p_head_jobs bigint[], p_head_ats timestamptz[], p_started bigint[])
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    -- Usually nothing slips, and this check is much cheaper than the rest.
    if not exists (select from planned as o
                     left join unnest(p_head_jobs, p_head_ats) as h (job_id, at) on h.job_id = o.job_id
                    where o.planned_start_at is not null
                      and (h.at is null or h.at > o.planned_start_at + interval '1 second')) then
        return;
    end if;
    with head as materialized (
        select h.job_id, h.at, h.ord from unnest(p_head_jobs, p_head_ats) with ordinality as h (job_id, at, ord)
    ), slip as materialized (
        select o.job_id, o.planned_start_at as was, o.node_names, h.at, h.ord
          from planned as o
          join pending as p on p.job_id = o.job_id and p.ready
          left join head as h on h.job_id = o.job_id
         where o.planned_start_at is not null
           -- The first pass after the planned start records it; later passes only see it move with the clock.
           and (o.planned_start_at > p_now
                or o.planned_start_at > (select s.at + interval '1 second' from pass as s order by s.id desc limit 1))
           and (h.at is null or h.at > o.planned_start_at + interval '1 second')
           -- The planned start of an array is that of its next task.
           and not exists (select from job as j where j.id = any (p_started) and j.array_job_id = o.job_id)
    ), change as materialized (
        select e.id, e.kind, e.actor, e.job_id,
               case when e.kind like 'node%' then 1 when e.kind like 'booking%' then 2
                    when e.kind in ('updated', 'submitted') then 4 else 3 end as rank
          from event as e
         where e.id > coalesce((select s.last_event_id from pass as s order by s.id desc limit 1), 0)
           and (e.kind like 'node%' or e.kind like 'booking%' or e.kind like 'policy%' or e.kind like 'partition%'
                or e.kind like 'licence%' or e.kind like '%limit%' or e.kind like 'qos%' or e.kind like 'account%'
                or e.kind = 'updated')
    )
    insert into event (at, kind, actor, job_id, detail)
    select p_now, 'slipped', 'odcd', s.job_id, jsonb_strip_nulls(jsonb_build_object(
               'from', _iso(s.was), 'to', _iso(s.at),
               'cause', case when c.id is not null then c.kind when r.job_id is not null then 'overrun'
                             when b.preempts then 'preemption' when b.job_id is not null then 'overtaken' else 'order' end,
               'event_id', c.id, 'by', c.actor, 'job_id', coalesce(c.job_id, r.job_id, b.job_id)))
      from slip as s
      left join lateral (
           select * from change as k order by k.rank, k.id desc limit 1) as c on true
      left join lateral (
           -- The job that should have left its nodes by now.
           select a.job_id
             from node as n join allocation as a on a.node_id = n.id
            where n.name = any (s.node_names) and a.ends_at <= p_now
            order by a.ends_at, a.job_id limit 1) as r on c.id is null
      left join lateral (
           -- The job that is ahead of it now, and was not planned or was planned for later.
           select w.job_id, exists (select from event as e where e.job_id = w.job_id and e.kind = 'preempts') as preempts
             from (select h.job_id, 1 as part from head as h where h.ord < coalesce(s.ord, 9223372036854775807)
                    union all select u, 0 from unnest(p_started) as u) as w
             left join planned as o on o.job_id = w.job_id
            where w.job_id <> s.job_id and (o.planned_start_at is null or o.planned_start_at > s.was)
            -- Prefer one that starts where this job was planned.
            order by preempts desc,
                     w.part = 0 and exists (select from allocation as a join node as n on n.id = a.node_id
                                             where a.job_id = w.job_id and n.name = any (s.node_names)) desc,
                     w.part desc, w.job_id limit 1) as b on true;
end;
$$;
