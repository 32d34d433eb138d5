-- odc._plan_changes: what this plan has changed so far, in order of time: starts end, protected jobs start and end. Jobs
-- without a time limit never end.
-- Arguments  p_protected, p_allocs  see ../README.md
-- Returns    microseconds from the pass's time; where the allocations begin in p_allocs, negative if they are taken then,
--            not released; how many there are
create or replace function odc._plan_changes(
    p_protected bigint[], p_allocs bigint[], out ats bigint[], out froms integer[], out counts integer[])
language sql immutable set search_path = odc, pg_temp as $$
    select array_agg(u.at order by u.at, u.ord), array_agg(u.first::integer order by u.at, u.ord),
           array_agg(u.count::integer order by u.at, u.ord)
      from (select p_protected[10 * number - 3] as at, number as ord, -p_protected[10 * number - 1] as first, p_protected[10 * number] as count
              from generate_series(1, cardinality(p_protected) / 10) as number
             union all
            select p_protected[10 * number - 2], -number, p_protected[10 * number - 1], p_protected[10 * number]
              from generate_series(1, cardinality(p_protected) / 10) as number
             where p_protected[10 * number - 2] < 4000000000000000000
             union all
            select p_allocs[a + 8] * 1000000, 1000000 + a, a, 1
              from generate_series(1, cardinality(p_allocs), 9) as a
             where p_allocs[a + 8] < 2147483647) as u
$$;
