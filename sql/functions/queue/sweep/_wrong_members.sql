-- odc._wrong_members: running jobs whose number of live members is not that of their allocations.
-- A join of two large tables. Without enable_nestloop, PostgreSQL hashes them also if it counted them when they were empty.
create or replace function odc._wrong_members()
returns table (job_id bigint, was integer, live integer)
language sql stable set search_path = odc, pg_temp set enable_nestloop = off as $$
    select r.job_id, r.live_members, a.live
      from running as r
      join (select l.job_id, count(*) filter (where l.state <> 'ended')::integer as live
              from allocation as l group by l.job_id) as a on a.job_id = r.job_id
     where r.live_members <> a.live
$$;
