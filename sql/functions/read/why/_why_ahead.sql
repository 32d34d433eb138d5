-- odc._why_ahead: the jobs that a plan puts ahead of a job: those that would start now and the protected job it is behind.
-- If it is protected itself and no other job starts, the protected jobs ahead of it. Only jobs that could be in its way
-- (_why_rivals) count.
-- Arguments  p_shape_id  its shape
--            p_before    jobs ahead of it in the last plan with the whole queue
--            p_gone      jobs that no longer count
--            p_limit     at most so many are returned; null: all
--            p_start_jobs, p_head_jobs, p_head_ats, p_refused_shapes, p_refused_heads  of the plan, as decide returns them
-- Returns    in the order of their starts in the plan, with a sentence about each; until: when it ends at the latest,
--            by the stored plan
create or replace function odc._why_ahead(
    p_job_id bigint, p_shape_id integer, p_before bigint[], p_gone bigint[], p_limit integer, p_start_jobs bigint[],
    p_head_jobs bigint[], p_head_ats timestamptz[], p_refused_shapes integer[], p_refused_heads bigint[], p_now timestamptz)
returns table (job_id bigint, text text, until timestamptz)
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_column
declare
    v_head constant integer := array_position(p_head_jobs, p_job_id);   -- its place among the protected jobs
begin
    return query
        with other as materialized (
            select distinct on (u.id) u.id, u.at, u.protected, l.time_limit_s, l.shape_id
              from (select s as id, p_now as at, false as protected from unnest(p_start_jobs) as s
                     union all
                    select r.id, p_head_ats[array_position(p_head_jobs, r.id)], false
                      from unnest(p_refused_shapes, p_refused_heads) as r (shape_id, id)
                     where v_head is null and r.shape_id = p_shape_id
                     union all
                    select e.id, e.at, true
                      from unnest(p_head_jobs, p_head_ats) with ordinality as e (id, at, place)
                     where e.at is not null
                       and case when v_head is null then e.id = any (p_before) else e.place < v_head end) as u
              join pending as l on l.job_id = u.id
             where u.id <> all (p_gone) and u.id <> p_job_id
             order by u.id, u.at, u.protected
        ), rival as materialized (
            select * from other as o
             where o.shape_id = any ((select _why_rivals(p_job_id, array_agg(distinct a.shape_id)) from other as a)::integer[])
        ), ahead as (
            -- The start in the stored plan; a plan without the jobs named so far has other times.
            select b.id, b.at as found_at, d.planned_start_at as at,
                   case when b.time_limit_s < 2147483647
                        then d.planned_start_at + make_interval(secs => b.time_limit_s) end as ends_at
              from rival as b left join planned as d on d.job_id = b.id
             where not b.protected or not exists (select from rival as s where not s.protected)
        )
        select a.id, format('job %s is ahead of it', a.id)
                     || coalesce(', starts by ' || _iso(a.at) || coalesce(' and ends by ' || _iso(a.ends_at), ''), ''),
               a.ends_at
          from ahead as a
         order by a.found_at, a.at, a.id
         limit p_limit;
end;
$$;
