-- odc._place_job: nodes on which the job at hand can start now: a gang's by _place_gang, a single one by _find_nodes, those of a
-- heterogeneous job by _place_components. Inlined.
-- Arguments  p_job   the job;  p_most  maximum number of nodes that its limits allow;  p_shapes  see _load_pass
--            p_node_ids, p_list_full, p_placed  see _place_components;  the others  as for _place_gang
create or replace function odc._place_job(
    p_job odc.candidate, p_most integer, p_shapes odc.shape_lists, p_node_ids integer[], p_list_full boolean, p_placed integer,
    p_allocs bigint[], p_free bigint[], p_points bigint[], p_protected bigint[], p_node_groups integer[],
    p_allow boolean[], p_blocks integer[], p_group_gpus integer[], p_group_cpus integer[], p_group_mems integer[],
    p_group_domains integer[], p_max_level integer, p_alt_spreads boolean[], p_alt_words bigint[], p_alt_partitions integer[],
    p_group_from integer[], p_group_to integer[], p_alt_groups integer[])
returns odc.picked_nodes
language sql stable as $$
    select case when p_shapes.component_to[p_job.shape] > 0 then
               odc._place_components(
                   p_job, p_shapes, p_free, p_points, p_protected, p_allocs, p_node_ids, p_node_groups, p_blocks, p_group_gpus,
                   p_group_cpus, p_group_mems, p_group_domains, p_max_level, p_alt_spreads, p_alt_words, p_alt_partitions,
                   p_group_from, p_group_to, p_alt_groups, p_list_full, p_placed)
           when p_most = 1 then
               odc._find_nodes(
                   p_free, p_points, p_protected, p_node_groups, p_allow, p_group_gpus, p_group_cpus, p_group_mems, p_group_domains,
                   p_max_level, p_job.alt_from, p_job.alt_to, p_alt_spreads, p_alt_words, p_job.gpus, p_job.cpus, p_job.mem,
                   p_job.exclusive, p_job.limit_us, p_job.booking, null, 1, null)
           else
               odc._place_gang(
                   p_free, p_points, p_protected, p_node_groups, p_allow, p_blocks, p_group_gpus, p_group_cpus, p_group_mems,
                   p_group_domains, p_max_level, p_job.alt_from, p_job.alt_to, p_alt_spreads, p_alt_words, p_alt_partitions,
                   p_group_from, p_group_to, p_alt_groups, p_job.gpus, p_job.cpus, p_job.mem, p_job.exclusive, p_job.limit_us,
                   p_job.booking, p_job.least, p_most, p_job.blocks_most)
           end
$$;
