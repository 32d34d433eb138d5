-- odc._split_named: split groups of nodes so that jobs that name nodes (--nodelist, --exclude) may use all of a group or
-- none of it.
-- Arguments  p_node_ids, p_groups  the nodes and the group of each;  p_shape_ids  the shapes of the jobs
-- Returns    groups: per node the new group;  of_groups, marks: per new group the old one, and the shapes that name its
--            nodes, an array as text: twice a shape's id if its node list includes them, plus one if it excludes them
create or replace function odc._split_named(
    p_node_ids integer[], p_groups integer[], p_shape_ids integer[],
    out groups integer[], out of_groups integer[], out marks text[])
language sql stable set search_path = odc, pg_temp as $$
    with named as (
        select n.id as node_id, array_agg(distinct w.mark order by w.mark) as marks
          from shape as s
         cross join lateral (
               select 2 * s.id::bigint, u from unnest(s.node_list) as u
                union all
               select 2 * s.id::bigint + 1, u from unnest(s.exclude_nodes) as u) as w (mark, name)
          join node as n on n.name = w.name
         where s.id = any (p_shape_ids)
         group by n.id
    ), placed as (
        select u.o, u.g, m.marks, dense_rank() over (order by u.g, m.marks nulls first)::integer as number
          from unnest(p_node_ids, p_groups) with ordinality as u (id, g, o)
          left join named as m on m.node_id = u.id
    ), kind as (
        select distinct p.number, p.g, p.marks from placed as p
    )
    select (select array_agg(p.number order by p.o) from placed as p),
           array_agg(k.g order by k.number), array_agg(coalesce(k.marks, '{}')::text order by k.number)
      from kind as k
$$;
