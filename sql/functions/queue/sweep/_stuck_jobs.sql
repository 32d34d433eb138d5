-- odc._stuck_jobs: jobs that wait for a dependency although none of their dependencies is still waiting.
-- Each job's first waiting term is found by index: see _singleton_verdicts. A job may have many terms.
create or replace function odc._stuck_jobs()
returns setof bigint
language sql stable set search_path = odc, pg_temp set enable_seqscan = off as $$
    select p.job_id
      from pending as p
      left join lateral (select true as waits from dependency as d where d.job_id = p.job_id and d.state = 'waiting' limit 1) as d on true
     where p.dependency = 'waiting' and d.waits is null
$$;
