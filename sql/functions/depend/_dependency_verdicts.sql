-- odc._dependency_verdicts: how each waiting dependency of these jobs stands now.
-- A target that was cancelled before it started counts as ended without success, and, for `after`, as started.
-- An array as a whole has started when no task of it waits, has ended when all have; afterok fails with the first
-- task that does.
-- Returns    met, waiting or never; due_at when only a delay is left
create or replace function odc._dependency_verdicts(p_job_ids bigint[], p_now timestamptz)
returns table (job_id bigint, ord integer, verdict odc.dependency_state, due_at timestamptz)
language sql stable as $$
    with d as (
        select d.*, w.queued_at
          from odc.dependency as d
          join odc.pending as w on w.job_id = d.job_id
         where d.job_id = any (p_job_ids) and d.state = 'waiting' and d.kind <> 'aftercorr'
    ), target as (
        select d.job_id, d.ord, d.kind, d.delay_s, d.name_key,
               case when d.target_task is null and a.job_id is not null then a.ended_ok + a.ended_not_ok >= a.task_count
                    when j.id is null then w.job_id is null
                    else j.state is not null end as ended,
               case when d.target_task is null and a.job_id is not null then a.ended_not_ok = 0
                    else j.state = 'COMPLETED' end as ok,
               case when d.target_task is null and a.job_id is not null then a.ended_not_ok > 0
                    else false end as spoilt,
               case when d.target_task is null and a.job_id is not null then w.job_id is null
                    when j.id is null then w.job_id is null
                    else j.state is not null or r.job_id is not null
                         or exists (select from odc.attempt as t where t.job_id = j.id) end as started,
               coalesce(r.started_at, j.started_at, (select max(x.started_at) from odc.running as x
                                                      where x.array_job_id = d.target_id), p_now) as started_at
          from d
          left join odc.array_job as a on a.job_id = d.target_id
          left join lateral (
               select j.id, j.state, j.started_at from odc.job as j
                where case when d.target_task is null then j.id = d.target_id
                           else j.array_job_id = d.target_id and j.array_task_id = d.target_task end
                limit 1) as j on d.kind <> 'singleton'
          left join odc.running as r on r.job_id = j.id
          left join odc.pending as w
            on w.job_id = d.target_id and w.tasks is not null and (d.target_task is null or w.tasks @> d.target_task)
    )
    select t.job_id, t.ord,
           case t.kind
               when 'singleton' then
                   case when exists (
                       select from odc.job as o
                        where o.id < t.job_id and o.state is null
                          and (o.uid, o.name) = (select m.uid, m.name from odc.job as m where m.id = t.job_id)
                          and o.array_job_id is distinct from t.job_id
                          and o.id in (select p.job_id from odc.pending as p union all select r.job_id from odc.running as r))
                        then 'waiting' else 'met' end
               when 'after' then
                   case when t.started and t.started_at + make_interval(secs => t.delay_s) <= p_now then 'met'
                        else 'waiting' end
               when 'afterany' then case when t.ended then 'met' else 'waiting' end
               when 'afterok' then
                   case when t.spoilt or (t.ended and not t.ok) then 'never' when t.ended then 'met' else 'waiting' end
               when 'afternotok' then
                   case when t.ended and t.ok then 'never' when t.ended then 'met' else 'waiting' end
           end::odc.dependency_state,
           case when t.kind = 'after' and t.started and t.delay_s > 0
                then t.started_at + make_interval(secs => t.delay_s) end
      from target as t;
$$;
