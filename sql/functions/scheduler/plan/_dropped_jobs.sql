-- odc._dropped_jobs: jobs and arrays of a plan whose starts or planned starts were not written, because they changed after
-- the plan was made. A replay decides as if they had not changed, and needs this list.
-- Arguments  p_start_jobs  as decide returns them;  p_started: ids that apply_plan returned;  p_head_jobs
-- Returns    ascending; null: none
create or replace function odc._dropped_jobs(p_start_jobs bigint[], p_started bigint[], p_head_jobs bigint[])
returns bigint[]
language sql stable set search_path = odc, pg_temp as $$
    with start as (
        select u.id, count(*) as n
          from unnest(p_start_jobs) as u (id)
         where cardinality(p_started) < cardinality(p_start_jobs)
         group by u.id
    ), dropped as (
        select s.id
          from start as s
         where s.n > (select count(*) from running as r
                       where r.job_id = any (p_started)
                         -- A task that had its own row counts as itself, any other task as its array.
                         and case when r.job_id = any (p_start_jobs) then r.job_id else r.array_job_id end = s.id)
         union
        select h.id from unnest(p_head_jobs) as h (id) where not exists (select from pending as p where p.job_id = h.id)
    )
    select array_agg(id order by id) from dropped;
$$;
