-- odc._missing_targets: find dependencies on jobs or tasks that do not exist. Jobs are not removed meanwhile, so callers do
-- not need the turn for it: the tasks of an array can be a text of 10,000 ranges, which is read once per array.
-- Rows are found by index: see _singleton_verdicts.
-- Arguments  p_jobs  each has a "dependency" {any, terms: [{kind, target_id, target_task}]}
-- Returns    the position (from 1) of each job that cannot be accepted, and why
create or replace function odc._missing_targets(p_jobs jsonb[])
returns table ("position" integer, code text, message text, hint text)
language sql stable set enable_seqscan = off as $$
    with term as materialized (
        select u.n, t.ord, (t.term ->> 'target_id')::bigint as target_id, (t.term ->> 'target_task')::integer as task,
               t.term ->> 'kind' = 'aftercorr' and (u.job -> 'dependency' ->> 'any')::boolean as corr_any
          from unnest(p_jobs) with ordinality as u (job, n)
         cross join jsonb_array_elements(u.job -> 'dependency' -> 'terms') with ordinality as t (term, ord)
    ), no_task as materialized (
        select w.target_id, x.task
          from (select t.target_id, array_agg(distinct t.task) as tasks
                  from term as t where t.task is not null group by t.target_id) as w
         cross join lateral (
               select coalesce(range_agg(k.tasks), '{}') as tasks
                 from (select p.tasks from odc.pending as p where p.job_id = w.target_id
                        union all
                       select odc._tasks_of(j.array_tasks) from odc.job as j
                        where j.array_job_id = w.target_id and j.array_tasks is not null) as k
               offset 0) as k
         cross join lateral (select u.task from unnest(w.tasks) as u (task) where not k.tasks @> u.task offset 0) as x
          left join lateral (
               select true as known from odc.job as j
                where j.array_job_id = w.target_id and j.array_task_id = x.task limit 1) as own on true
         where own.known is null
    ), missing as (
        select distinct on (t.n) t.n, t.target_id, t.task, t.corr_any, j.id is not null as known,
               a.job_id is not null as is_array
          from term as t
          left join lateral (select x.id from odc.job as x where x.id = t.target_id offset 0) as j on true
          left join lateral (select x.job_id from odc.array_job as x where x.job_id = t.target_id offset 0) as a on true
         where t.corr_any or t.target_id is not null and j.id is null
            or t.task is not null and (a.job_id is null
                                       or (t.target_id, t.task) in (select m.target_id, m.task from no_task as m))
         order by t.n, t.ord
    )
    select n::integer, case when corr_any then 'OD016' else 'OD011' end,
           case when corr_any then 'aftercorr cannot be one of several conditions joined by ?'
                when not known then format('dependency on job %s, which does not exist', target_id)
                when not is_array then format('dependency on %s_%s, but job %s is not an array', target_id, task, target_id)
                else format('dependency on %s_%s, a task that array %s does not have', target_id, task, target_id) end,
           case when corr_any then 'Join the conditions by "," or wait for the array as a whole.'
                else '`odcctl queue -t all` lists all jobs.' end
      from missing
$$;
