-- odc._refused_dependencies: find jobs with too many dependencies on one target: when a job starts or ends, one
-- transaction judges everything that waits for it.
-- Rows are found by index: see _singleton_verdicts.
-- Arguments  p_heads, p_jobs, p_requests  the requests, their jobs, and per job its request, counted from 0; each job has a
--                    "dependency" {any, terms: [{kind, target_id, target_task}]}
-- Returns    the position (from 1) of each job that cannot be accepted, and why
create or replace function odc._refused_dependencies(p_heads jsonb[], p_jobs jsonb[], p_requests integer[])
returns table ("position" integer, code text, message text, hint text)
language sql stable set enable_seqscan = off as $$
    with term as (
        select u.n, t.ord, (t.term ->> 'target_id')::bigint as target_id, (p_heads[u.request + 1] ->> 'uid')::integer as uid
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
    )
    select c.n::integer, 'OD009', format('more than 10000 dependencies of your waiting jobs would be on job %s', c.target_id),
           'Submit an array, which counts as one job, or let the jobs depend on one job that collects the others.'
      from crowded as c
$$;
