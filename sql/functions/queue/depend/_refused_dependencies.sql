-- odc._refused_dependencies: find dependencies on jobs or tasks that do not exist, and those that are too many: when a
-- job starts or ends, one transaction judges everything that waits for it.
-- Rows are found by index: see _singleton_verdicts.
-- Arguments  p_heads, p_jobs, p_requests  the requests, their jobs, and per job its request, counted from 0; each job has a
--                    "dependency" {any, terms: [{kind, target_id, target_task}]}
-- Returns    the position (from 1) of each job that cannot be accepted, and why
create or replace function odc._refused_dependencies(p_heads jsonb[], p_jobs jsonb[], p_requests integer[])
returns table ("position" integer, code text, message text, hint text)
language sql stable set enable_seqscan = off as $$
    with term as (
        select u.n, t.ord, (t.term ->> 'target_id')::bigint as target_id, (t.term ->> 'target_task')::integer as task,
               t.term ->> 'kind' = 'aftercorr' and (u.job -> 'dependency' ->> 'any')::boolean as corr_any,
               (p_heads[u.request + 1] ->> 'uid')::integer as uid
          from unnest(p_jobs, p_requests) with ordinality as u (job, request, n)
         cross join jsonb_array_elements(u.job -> 'dependency' -> 'terms') with ordinality as t (term, ord)
    ), crowd as materialized (
        -- Of each user, so that no user can keep another one's jobs from depending on a job.
        select g.uid, g.target_id,
               10000 - (select count(*)
                          from (select from odc.dependency as d
                                 cross join lateral (select x.uid from odc.pending as x where x.job_id = d.job_id offset 0) as p
                                 where d.target_id = g.target_id and d.state = 'waiting' and p.uid = g.uid
                                 limit 10000) as w) as room
          from (select t.uid, t.target_id from term as t where t.target_id is not null group by t.uid, t.target_id) as g
    ), crowded as (
        select distinct on (t.n) t.n, t.target_id
          from (select t.*, row_number() over (partition by t.uid, t.target_id order by t.n, t.ord) as place from term as t) as t
          join crowd as c on c.uid = t.uid and c.target_id = t.target_id
         where t.place > c.room
         order by t.n, t.ord
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
      from missing
     union all
    select c.n::integer, 'OD009', format('more than 10000 dependencies of your waiting jobs would be on job %s', c.target_id),
           'Submit an array, which counts as one job, or let the jobs depend on one job that collects the others.'
      from crowded as c
     where not exists (select from missing as m where m.n = c.n);
$$;
