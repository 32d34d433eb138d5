-- odc._place_components: place a heterogeneous job: all components now, or none. It tries a few orders, because each component
-- takes the nodes that are best for it, and may leave none for another. Each order begins with the component that found no nodes
-- in the one before; if it finds none as the first, it would find none in any order. No other order is tried that differs
-- only by components that ask for the same.
-- Arguments  p_placed  how many components this plan has placed or tried to place;  the others  as for _place_in_order
-- Returns    see picked_nodes; picks: in the order of its components;  placed: p_placed and its own
create or replace function odc._place_components(
    p_job odc.candidate, p_shapes odc.shape_lists, p_free bigint[], p_points bigint[], p_protected bigint[], p_allocs bigint[],
    p_node_ids integer[], p_node_groups integer[], p_blocks integer[], p_group_gpus integer[], p_group_cpus integer[],
    p_group_mems integer[], p_group_domains integer[], p_max_level integer, p_alt_spreads boolean[], p_alt_words bigint[],
    p_alt_partitions integer[], p_group_from integer[], p_group_to integer[], p_alt_groups integer[], p_list_full boolean, p_placed integer)
returns odc.picked_nodes
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_most constant integer := 4096;    -- components in a plan; a half of them is for the first orders of its jobs
    v_from constant integer := p_shapes.component_from[p_job.shape];  v_to constant integer := p_shapes.component_to[p_job.shape];
    v_order integer[];  v_failed integer;  v_placed record;  v_picked picked_nodes;
    v_kinds integer[];  v_tried text[] := '{}';  v_kind_order text;     -- components of one kind ask for the same
begin
    v_picked.placed := p_placed;
    select array_agg(k.kind order by k.at)
      into v_kinds
      from (select u.at, dense_rank() over (
                       order by p_shapes.leasts[s.shape], p_shapes.gpus[s.shape], p_shapes.cpus[s.shape], p_shapes.mems[s.shape],
                                p_shapes.exclusives[s.shape], p_shapes.alt_to[s.shape] - p_shapes.alt_from[s.shape],
                                p_alt_groups[p_group_from[p_shapes.alt_from[s.shape]]:p_group_to[p_shapes.alt_to[s.shape]]],
                                p_shapes.component_lists[u.at])::integer as kind
              from generate_series(v_from, v_to) as u (at)
             cross join lateral (select p_shapes.component_shapes[u.at] as shape) as s) as k;
    for v_try in 1..4 loop
        exit when v_picked.placed + v_to - v_from >= case v_try when 1 then v_most else v_most / 2 end;
        v_order := array(select u from generate_series(v_from, v_to) as u
                          order by u <> v_failed, case v_try when 1 then u when 2 then -u when 3 then p_shapes.component_ords[u]
                                                             else (u = v_from)::integer end, u);
        v_kind_order := array(select v_kinds[u.at - v_from + 1] from unnest(v_order) with ordinality as u (at, ord) order by u.ord)::text;
        continue when v_kind_order = any (v_tried);
        v_tried := v_tried || v_kind_order;
        v_placed := _place_in_order(
            p_job, p_shapes, v_order, p_free, p_points, p_protected, p_allocs, p_node_ids, p_node_groups, p_blocks, p_group_gpus,
            p_group_cpus, p_group_mems, p_group_domains, p_max_level, p_alt_spreads, p_alt_words, p_alt_partitions, p_group_from,
            p_group_to, p_alt_groups, p_list_full);
        v_picked.placed := v_picked.placed + v_placed.placed;  v_failed := v_placed.failed;
        if v_placed.fits then
            v_picked.free := v_placed.free;  v_picked.points := v_placed.points;  v_picked.protected := v_placed.protected;
            v_picked.allocs := v_placed.allocs;
            v_picked.picks := array(select v_placed.allocs[u.at]::integer
                                      from generate_series(cardinality(p_allocs) + 1, cardinality(v_placed.allocs), 9) as u (at)
                                     where v_placed.allocs[u.at + 5] > 0 order by u.at);
        end if;
        exit when v_placed.fits or v_placed.placed = 1;
    end loop;
    return v_picked;
end;
$$;
