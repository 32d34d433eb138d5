-- odc._order_components: the components of heterogeneous jobs in the order in which they are placed: of each job, the one
-- with the fewest groups first, and of those the one with the most nodes, then the largest.
-- Arguments  p_shape_ids, p_what_if  as for _plan_shapes;  the others  as _plan_shapes returns them
-- Returns    per shape its span of the other arrays, from > to: it is not heterogeneous;  shapes: positions of shapes;
--            ords: numbers of the components within their jobs, from 0;  lists: their lists of nodes; null: none
create or replace function odc._order_components(
    p_shape_ids integer[], p_what_if jsonb, p_ids integer[], p_alt_from integer[], p_alt_to integer[], p_group_from integer[],
    p_group_to integer[],
    out froms integer[], out tos integer[], out shapes integer[], out ords integer[], out lists jsonb[])
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_wholes integer[];
begin
    select array_agg(c.whole order by c.at), array_agg(c.number order by c.at), array_agg(c.ord order by c.at),
           array_agg(c.lists order by c.at)
      into v_wholes, shapes, ords, lists
      from (select w.number as whole, t.number, (s.ord - 1)::integer as ord,
                   case when s.node_list is not null or s.exclude_nodes is not null
                        then jsonb_build_object('node_list', s.node_list, 'exclude_nodes', s.exclude_nodes) end as lists,
                   row_number() over (
                       order by s.whole_id desc,
                                coalesce(p_group_to[p_alt_to[t.number]] - p_group_from[p_alt_from[t.number]] + 1, 0),
                                s.node_count desc, s.exclusive desc, s.gpus_per_node desc, s.cpus_per_node desc,
                                s.mem_per_node_mib desc, s.ord) as at
              from _split_components(p_shape_ids, p_what_if) as s
              -- Joins: a search in the array for each component takes seconds if there are thousands.
              join unnest(p_ids) with ordinality as i (id, ord) on i.id = s.id
              join unnest(p_ids) with ordinality as h (id, ord) on h.id = s.whole_id
             cross join lateral (select i.ord::integer as number) as t
             cross join lateral (select h.ord::integer as number) as w) as c;
    froms := array_fill(1, array[coalesce(cardinality(p_ids), 0)]);
    tos := array_fill(0, array[coalesce(cardinality(p_ids), 0)]);
    for v_at in 1..coalesce(cardinality(v_wholes), 0) loop
        if tos[v_wholes[v_at]] = 0 then
            froms[v_wholes[v_at]] := v_at;
        end if;
        tos[v_wholes[v_at]] := v_at;
    end loop;
end;
$$;
