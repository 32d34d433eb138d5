-- odc._refused_dependencies: find dependencies on jobs or tasks that do not exist.
-- Arguments  p_jobs  jobs as submitted; each has a "dependency" {any, terms: [{kind, target_id, target_task}]}
-- Returns    the position (from 1) of each job that cannot be accepted, and why
create or replace function odc._refused_dependencies(p_jobs jsonb[])
returns table ("position" integer, code text, message text, hint text)
language sql stable as $$
    with term as (
        select u.n, t.ord, (t.term ->> 'target_id')::bigint as target_id, (t.term ->> 'target_task')::integer as task,
               t.term ->> 'kind' = 'aftercorr' and (u.job -> 'dependency' ->> 'any')::boolean as corr_any
          from unnest(p_jobs) with ordinality as u (job, n)
         cross join jsonb_array_elements(u.job -> 'dependency' -> 'terms') with ordinality as t (term, ord)
    ), missing as (
        select distinct on (t.n) t.n, t.target_id, t.task, t.corr_any, j.id is not null as known,
               a.job_id is not null as is_array
          from term as t
          left join odc.job as j on j.id = t.target_id
          left join odc.array_job as a on a.job_id = t.target_id
         where t.corr_any or t.target_id is not null and j.id is null
            or t.task is not null and (a.job_id is null or not odc._has_task(t.target_id, t.task))
         order by t.n, t.ord
    )
    select n::integer, case when corr_any then 'OD016' else 'OD011' end,
           case when corr_any then 'aftercorr cannot be one of several conditions joined by ?'
                when not known then format('dependency on job %s, which does not exist', target_id)
                when not is_array then format('dependency on %s_%s, but job %s is not an array', target_id, task, target_id)
                else format('dependency on %s_%s, a task that array %s does not have', target_id, task, target_id) end,
           case when corr_any then 'Join the conditions by "," or wait for the array as a whole.'
                else '`odcctl queue -t all` lists all jobs.' end
      from missing;
$$;
