-- odc._plan_nodes: the nodes that may start jobs, as parallel arrays; position is the planner's number of a node.
-- Returns    one row: node_ids, groups (dense numbers 1..), masks and amounts free, and per dense group its
--            id, totals and EFA domain (0: gangs there need none)
create or replace function odc._plan_nodes(
    out node_ids integer[], out groups integer[], out masks bigint[], out gpus integer[], out cpus integer[],
    out mems integer[], out jobs integer[], out group_ids integer[], out group_gpus integer[],
    out group_cpus integer[], out group_mems integer[], out group_domains integer[])
language sql stable as $$
    with g as (
        select g.id, g.gpus, g.cpus, g.mem_mib,
               row_number() over (order by g.id)::integer as number,
               case when t.efa_per_node > 0 and g.efa_domain is not null
                    then dense_rank() over (order by g.efa_domain)::integer else 0 end as domain
          from odc.node_group as g
          join odc.gpu_type as t on t.name = g.gpu_type
    ), n as (
        select array_agg(f.node_id order by f.node_id) as node_ids,
               array_agg(g.number order by f.node_id) as groups,
               array_agg(f.gpu_mask order by f.node_id) as masks,
               array_agg(f.gpus order by f.node_id) as gpus,
               array_agg(f.cpus order by f.node_id) as cpus,
               array_agg(f.mem_mib order by f.node_id) as mems,
               array_agg(f.jobs order by f.node_id) as jobs
          from odc.node_free as f
          join g on g.id = f.group_id
         where f.up
    )
    select n.node_ids, n.groups, n.masks, n.gpus, n.cpus, n.mems, n.jobs,
           array_agg(g.id order by g.number), array_agg(g.gpus order by g.number),
           array_agg(g.cpus order by g.number), array_agg(g.mem_mib order by g.number),
           array_agg(g.domain order by g.number)
      from n left join g on true
     group by 1, 2, 3, 4, 5, 6, 7;
$$;
