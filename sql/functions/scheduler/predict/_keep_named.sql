-- odc._keep_named: of the groups of each alternative, those that its shape's node lists allow.
-- Arguments  p_marks  per group, from _split_named;  the others as _plan_shapes returns them
-- Returns    groups: the flat list of groups; froms, tos: the span of each alternative, empty if nothing is left
create or replace function odc._keep_named(
    p_marks text[], p_shape_ids integer[], p_alt_from integer[], p_alt_to integer[],
    p_from integer[], p_to integer[], p_groups integer[],
    out froms integer[], out tos integer[], out groups integer[])
language sql stable set search_path = odc, pg_temp as $$
    with alternative as (
        select a.o as number, a.f, a.t, d.id, cardinality(d.node_list) > 0 as chooses
          from unnest(p_from, p_to) with ordinality as a (f, t, o)
          join unnest(p_shape_ids, p_alt_from, p_alt_to) as s (id, f, t) on a.o between s.f and s.t
          join shape as d on d.id = s.id
    ), kept as (
        select a.number, g.pos, p_groups[g.pos] as grp
          from alternative as a
         cross join lateral generate_series(a.f, a.t) as g (pos)
         cross join lateral (select p_marks[p_groups[g.pos]]::bigint[] as marks) as m
         where (a.chooses is not true or 2 * a.id::bigint = any (m.marks)) and 2 * a.id::bigint + 1 <> all (m.marks)
    ), span as (
        select a.number, count(k.pos) as n, sum(count(k.pos)) over (order by a.number) as upto
          from alternative as a left join kept as k on k.number = a.number
         group by a.number
    )
    select (select array_agg((s.upto - s.n + 1)::integer order by s.number) from span as s),
           (select array_agg(s.upto::integer order by s.number) from span as s),
           (select coalesce(array_agg(k.grp order by k.number, k.pos), '{}') from kept as k)
$$;
