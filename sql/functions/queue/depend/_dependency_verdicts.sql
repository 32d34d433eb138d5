-- odc._dependency_verdicts: the current verdict on each waiting dependency of these jobs, except singletons and
-- aftercorr. A target that was cancelled before it started counts as ended without success, and, for `after`, as started.
-- A whole array has started when none of its tasks waits for its first start, and has ended when all have ended.
-- afterok fails with the first task that fails.
-- Arguments  p_target_ids  only dependencies on these jobs and arrays; null: on any
-- Returns    met, waiting or never; due_at when only a delay is left
create or replace function odc._dependency_verdicts(p_job_ids bigint[], p_target_ids bigint[], p_now timestamptz)
returns table (job_id bigint, ord integer, verdict odc.dependency_state, due_at timestamptz)
language sql stable as $$
    select d.job_id, d.ord,
           case d.kind
               when 'after' then case when s.due_at <= p_now then 'met' else 'waiting' end
               when 'afterany' then case when t.ended then 'met' else 'waiting' end
               when 'afternotok' then case when not t.ended then 'waiting' when t.ok then 'never' else 'met' end
               else case when t.spoilt then 'never' when t.ended then 'met' else 'waiting' end
           end::odc.dependency_state,
           case when s.due_at > p_now then s.due_at end
      from unnest(p_job_ids) as w (id)
     cross join lateral (select x.* from odc.dependency as x where x.job_id = w.id offset 0) as d
      left join odc.array_job as a on a.job_id = d.target_id and d.target_task is null
      left join lateral (
           select j.id, j.state, j.started_at, j.ended_at
             from odc.job as j
            where j.id = d.target_id and d.target_task is null and a.job_id is null
            union all
           select j.id, j.state, j.started_at, j.ended_at
             from odc.job as j
            where j.array_job_id = d.target_id and j.array_task_id = d.target_task) as j on true
     cross join lateral (
           -- A task without a row of its own waits in its array's range, or was cancelled with others.
           select j.id is null and exists (select from odc.pending as p
                                            where p.job_id = d.target_id and p.tasks @> d.target_task) as in_range) as r
     cross join lateral (
           select case when a.job_id is not null then a.ended_ok + a.ended_not_ok >= a.task_count
                       else j.state is not null or j.id is null and not r.in_range end as ended,
                  case when a.job_id is not null then a.ended_not_ok = 0 else j.state is not distinct from 'COMPLETED' end as ok,
                  case when a.job_id is not null then a.ended_not_ok > 0
                       else j.state is distinct from 'COMPLETED' and (j.state is not null or j.id is null and not r.in_range)
                  end as spoilt) as t
      left join lateral (
           select coalesce(
                      d.due_at,
                      case when a.job_id is not null
                           then case when not exists (select from odc.pending as p
                                                       where p.array_job_id = a.job_id and p.attempt = 1) then p_now end
                           when j.id is null then case when not r.in_range then p_now end
                           else coalesce(j.started_at, j.ended_at,
                                         (select x.started_at from odc.running as x where x.job_id = j.id),
                                         (select min(x.started_at) from odc.attempt as x where x.job_id = j.id)) end
                      + make_interval(secs => d.delay_s)) as due_at
            where d.kind = 'after') as s on true
     where d.state = 'waiting' and d.kind not in ('singleton', 'aftercorr')
       and (p_target_ids is null or d.target_id in (select unnest(p_target_ids)));
$$;
