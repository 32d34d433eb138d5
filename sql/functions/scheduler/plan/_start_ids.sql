-- odc._start_ids: the id under which each start of a plan runs: the n-th start of an array's row is the n-th task that was
-- taken from it.
-- Arguments  p_start_jobs       per start: its job; an array's row once per task
--            p_arrays           those of them that are arrays' rows
--            p_taken_jobs, _ids the tasks that were taken, in order: the array's row, the id of the task
-- Returns    null for starts of an array for which no task is left
-- One array may have all starts of a plan, so a join of starts and tasks by array and number would compare each with each:
-- PostgreSQL does not know how long the arrays are, and may join by the array alone.
create or replace function odc._start_ids(
    p_start_jobs bigint[], p_arrays bigint[], p_taken_jobs bigint[], p_taken_ids bigint[])
returns bigint[]
language sql immutable set search_path = odc, pg_temp set enable_nestloop = off as $$
    select array_agg(case when s.job_id = any (p_arrays) then p_taken_ids[t.before + s.n] else s.job_id end order by s.ord)
      from (select u.job_id, u.ord, row_number() over (partition by u.job_id order by u.ord) as n
              from unnest(p_start_jobs) with ordinality as u (job_id, ord)) as s
      left join (select u.job_id, min(u.ord) - 1 as before, count(*) as n
                   from unnest(p_taken_jobs) with ordinality as u (job_id, ord) group by u.job_id) as t
        on t.job_id = s.job_id and s.n <= t.n;
$$;
