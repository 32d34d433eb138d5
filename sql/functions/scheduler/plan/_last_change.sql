-- odc._last_change: the last moment at which a plan changes what is free: a start of it ends, a protected job or a booking begins
-- or ends. Those without an end in sight do not count.
-- Arguments  p_nodes  their number;  the others  see ../README.md
-- Returns    microseconds from the pass's time; 0: nothing changes
create or replace function odc._last_change(p_points bigint[], p_nodes integer, p_protected bigint[], p_allocs bigint[])
returns bigint
language sql immutable set search_path = odc, pg_temp as $$
    select greatest(0, (select max(u.at) from _plan_changes(p_protected, p_allocs) as c cross join lateral unnest(c.ats) as u (at)),
                    (select max(e.at)
                       from generate_series(p_nodes + 1, cardinality(p_points), 9) as o (point)
                      cross join lateral (values (p_points[o.point + 3]), (p_points[o.point + 4])) as e (at)
                      where e.at < 4000000000000000000))
$$;
