-- odc._place_components: place a heterogeneous job: all components now, or none. It tries a few orders, because each component
-- takes the nodes that are best for it, and may leave none for another.
-- Arguments  as for _place_in_order
-- Returns    as _place_in_order;  dead: its new place in that array
create or replace function odc._place_components(
    p_job odc.candidate, p_shapes odc.shape_lists, p_free bigint[], p_points bigint[], p_protected bigint[], p_allocs bigint[],
    p_node_ids integer[], p_node_groups integer[], p_blocks integer[], p_group_gpus integer[], p_group_cpus integer[],
    p_group_mems integer[], p_group_domains integer[], p_max_level integer, p_alt_spreads boolean[], p_alt_words bigint[],
    p_alt_partitions integer[], p_group_from integer[], p_group_to integer[], p_alt_groups integer[], p_list_full boolean,
    out fits boolean, out dead integer, out free bigint[], out points bigint[], out protected bigint[], out allocs bigint[])
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_from constant integer := p_shapes.component_from[p_job.shape];  v_to constant integer := p_shapes.component_to[p_job.shape];
    v_order integer[] := array(select u from generate_series(v_from, v_to) as u order by u);
    v_placed record;
begin
    for v_try in 1..4 loop
        v_order := case v_try when 1 then v_order
                              when 2 then array(select u from generate_series(v_from, v_to) as u order by u desc)
                              when 3 then array(select u from generate_series(v_from, v_to) as u
                                                order by p_shapes.component_ords[u])
                              else array(select u from generate_series(v_from, v_to) as u order by u = v_from, u) end;
        v_placed := _place_in_order(
            p_job, p_shapes, v_order, p_free, p_points, p_protected, p_allocs, p_node_ids, p_node_groups, p_blocks, p_group_gpus,
            p_group_cpus, p_group_mems, p_group_domains, p_max_level, p_alt_spreads, p_alt_words, p_alt_partitions, p_group_from,
            p_group_to, p_alt_groups, p_list_full);
        exit when v_placed.fits;
    end loop;
    fits := v_placed.fits;  free := v_placed.free;  points := v_placed.points;  protected := v_placed.protected;
    allocs := v_placed.allocs;  dead := case when fits then 2147483647 else p_job.limit_s - 1 end;
end;
$$;
