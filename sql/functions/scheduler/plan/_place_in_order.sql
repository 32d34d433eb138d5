-- odc._place_in_order: place the components of a heterogeneous job now, in one order: all or none.
-- The arrays that it changes are copies, so a job that does not fit leaves no trace.
-- Arguments  p_job   the job;  p_shapes  see _load_pass;  p_order  the components: rows of its component_shapes
--             p_list_full  see _free_lists;  the others  as for _place_job
-- Returns    fits; and if it does, the arrays as they are after its start. Its allocations are in the order of its components
--            failed: the component that found no nodes;  placed: how many were tried
create or replace function odc._place_in_order(
    p_job odc.candidate, p_shapes odc.shape_lists, p_order integer[], p_free bigint[], p_points bigint[], p_protected bigint[],
    p_allocs bigint[], p_node_ids integer[], p_node_groups integer[], p_blocks integer[], p_group_gpus integer[],
    p_group_cpus integer[], p_group_mems integer[], p_group_domains integer[], p_max_level integer, p_alt_spreads boolean[],
    p_alt_words bigint[], p_alt_partitions integer[], p_group_from integer[], p_group_to integer[], p_alt_groups integer[],
    p_list_full boolean,
    out fits boolean, out failed integer, out placed integer, out free bigint[], out points bigint[], out protected bigint[], out allocs bigint[])
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_begin constant integer := cardinality(p_allocs);
    v_starts integer[];  v_ends integer[];      -- per component: its part of p_allocs
    v_part candidate;  v_found picked_nodes;  v_at integer;  v_ord integer;  v_first integer;
    v_rank integer := 0;  v_placed bigint[];
begin
    fits := false;  placed := 0;
    foreach v_at in array p_order loop
        v_ord := p_shapes.component_ords[v_at] + 1;  placed := placed + 1;
        v_part := _describe_job(p_shapes, p_job.job_id, p_job.class, p_shapes.component_shapes[v_at], p_job.limit_s, 0);
        v_found := _place_job(
            v_part, v_part.least, p_shapes, p_node_ids, p_list_full, 0, p_allocs, p_free, p_points, p_protected, p_node_groups,
            _allow_lists(p_node_ids, p_shapes.component_lists[v_at]), p_blocks, p_group_gpus, p_group_cpus, p_group_mems,
            p_group_domains, p_max_level, p_alt_spreads, p_alt_words, p_alt_partitions, p_group_from, p_group_to, p_alt_groups);
        if v_found.protected is not null then
            p_protected := v_found.protected;
        end if;
        if v_found.points is not null then
            p_points := v_found.points;
            p_allocs := _plan_allocations(p_allocs, p_points, p_protected, 1, p_node_groups, p_group_gpus, p_group_cpus,
                                          p_group_mems);
        end if;
        if v_found.picks[1] is null then
            failed := v_at;
            return;
        end if;
        v_first := cardinality(p_allocs);
        p_allocs := _allocate_nodes(p_allocs, p_free, cardinality(p_node_ids), v_found.picks, v_part.gpus, v_part.cpus, v_part.mem,
                                    v_part.exclusive, p_job.job_id, p_alt_partitions[v_found.alternative], p_job.limit_s);
        p_free := _take_nodes(p_free, p_allocs, v_first, p_node_groups, p_group_gpus, p_group_cpus, p_list_full);
        if cardinality(p_points) > cardinality(p_node_ids) then
            p_points := _take_at_points(p_points, p_allocs, v_first, p_job.limit_us);
        end if;
        v_starts[v_ord] := v_first + 1;  v_ends[v_ord] := cardinality(p_allocs);
    end loop;

    v_placed := p_allocs;
    for v_ord in 1..cardinality(v_starts) loop
        for v_alloc in v_starts[v_ord]..v_ends[v_ord] by 9 loop
            p_allocs[v_begin + 9 * v_rank + 1:v_begin + 9 * v_rank + 9] := v_placed[v_alloc:v_alloc + 8];
            v_rank := v_rank + 1;
            p_allocs[v_begin + 9 * v_rank - 3] := v_rank;
        end loop;
    end loop;
    fits := true;  free := p_free;  points := p_points;  protected := p_protected;  allocs := p_allocs;
end;
$$;
