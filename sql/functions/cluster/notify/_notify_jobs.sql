-- odc._notify_jobs: put notifications about jobs into the outbox, for those who asked for them. Call it in the transaction
-- of the event, after the event's rows are written. An array is reported as a whole, unless its user asked for its tasks:
-- it begins with its first task and ends with its last one, and anything else is reported once an hour.
-- While no user has a webhook and no job has mail, it costs one look at two empty tables.
-- Arguments  p_event    begin (the job was placed), end (it is over, well or not), requeue, invalid_depend
--            p_job_ids  null: none
-- Locks      as _fill_outbox
create or replace function odc._notify_jobs(p_event text, p_job_ids bigint[], p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_rows jsonb;
begin
    if p_job_ids is null or not exists (select from job_mail) and not exists (select from webhook) then
        return;
    end if;
    with asked as (
        select j.uid, j.user_name, w.channel, w.address, w.kinds, o.whole,
               case when o.whole then j.array_job_id else j.id end as job_id,
               max(j.state) as state, count(*) filter (where r.attempt = 1) as first
          from unnest(p_job_ids) as e (id)
         cross join lateral (select x.* from job as x where x.id = e.id offset 0) as j
         cross join lateral (
               select 'mail' as channel, m.address, m.kinds from job_mail as m where m.job_id = coalesce(j.array_job_id, j.id)
                union all
               select 'webhook', null, h.kinds from webhook as h where h.uid = j.uid) as w
         cross join lateral (select j.array_job_id is not null and not 'array_tasks' = any (w.kinds) as whole) as o
          left join running as r on r.job_id = e.id and p_event = 'begin'
         group by 1, 2, 3, 4, 5, 6, 7
    ), due as (
        select a.*
          from asked as a
          left join array_job as w on w.job_id = a.job_id and a.whole
         where not a.whole
            or case p_event when 'begin' then w.started = a.first and a.first > 0
                            when 'end' then w.ended_ok + w.ended_not_ok >= w.task_count
                            else not exists (select from outbox as o
                                              where o.job_id = a.job_id and o.kind = p_event and o.channel = a.channel
                                                and o.created_at > p_now - interval '1 hour') end
    )
    select jsonb_agg(jsonb_build_object(
               'uid', d.uid, 'user', d.user_name, 'channel', d.channel, 'address', d.address, 'kind', k.kind, 'job_id', d.job_id,
               'facts', case when d.whole then _array_notification(d.job_id, p_now) else _job_notification(d.job_id, p_now) end)
               order by d.uid, d.job_id, d.channel, k.kind)
      into v_rows
      from due as d
     cross join lateral _matching_kinds(p_event, d.kinds, d.state, case when d.whole then d.job_id end) as k (kind);
    perform _fill_outbox(v_rows, p_now);
end;
$$;
