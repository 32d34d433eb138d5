-- odc._stuck_jobs: jobs that wait for a dependency although none of their dependencies is still waiting.
-- enable_nestloop: see _repair_nodes.
create or replace function odc._stuck_jobs()
returns setof bigint
language sql stable set search_path = odc, pg_temp set enable_nestloop = off as $$
    select p.job_id
      from pending as p
     where p.dependency = 'waiting'
       and not exists (select from dependency as d where d.job_id = p.job_id and d.state = 'waiting')
$$;
