-- odc._check_fits: refuse a shape that no node, or too few nodes of one partition, could run even when idle.
-- Arguments  p_partition_ids, p_gpus, p_cpus, p_mems, p_domains, p_counts  what _possible_nodes gave, parallel
-- Raises     OD008 NeverFits
create or replace function odc._check_fits(
    p_shape shape, p_partition_ids integer[], p_gpus integer[], p_cpus integer[], p_mems integer[],
    p_domains text[], p_counts bigint[])
returns void
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_fitting bigint;
    v_asked   text;
    v_biggest text;
begin
    -- A gang stays in one partition, and one of whole nodes in one EFA domain.
    select coalesce(max(t.fitting), 0) into v_fitting
      from (select sum(n.node_count) as fitting
              from unnest(p_partition_ids, p_gpus, p_cpus, p_mems, p_domains, p_counts)
                   as n (partition_id, gpus, cpus, mem, domain, node_count)
             where n.gpus >= p_shape.gpus_per_node and n.cpus >= p_shape.cpus_per_node
               and n.mem >= p_shape.mem_per_node_mib
             group by n.partition_id,
                      case when p_shape.node_count > 1 and (p_shape.exclusive or n.gpus = p_shape.gpus_per_node)
                           then n.domain end) as t;
    if v_fitting >= p_shape.node_count then
        return;
    end if;
    -- One CPU beside GPUs is what nobody asked for: the least that a task has.
    v_asked := _amounts(p_shape.gpus_per_node,
                        nullif(p_shape.cpus_per_node, case when p_shape.gpus_per_node > 0 then 1 end),
                        p_shape.mem_per_node_mib);
    select _amounts(n.gpus, n.cpus, n.mem) into v_biggest
      from unnest(p_gpus, p_cpus, p_mems) as n (gpus, cpus, mem)
     order by n.gpus desc, n.cpus desc, n.mem desc limit 1;
    raise exception using errcode = 'OD008',
        message = case
            when v_fitting = 0 then format('no node could ever run it: asked for %s on one node, the biggest has %s',
                                           v_asked, v_biggest)
            else format('too few nodes could ever run it: asked for %s nodes with %s each, there are %s%s',
                        p_shape.node_count, v_asked, v_fitting,
                        case when array_position(p_domains, null) is null
                                  or cardinality(array_remove(p_domains, null)) > 0
                             then ' together in one partition and EFA domain' else '' end) end,
        hint = 'Ask for less; `odcctl nodes` shows what each node has.';
end;
$$;
