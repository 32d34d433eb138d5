-- odc._shape_amounts: the amounts that a job of a shape counts with in limits: nodes, GPUs, CPUs. An exclusive job counts
-- with the largest node it might get, because it takes all of it; a job on n to m nodes counts with n; a heterogeneous
-- job with the sum of its components.
create or replace function odc._shape_amounts(p_shape odc.shape)
returns table (nodes bigint, gpus bigint, cpus bigint)
language sql stable as $$
    select p_shape.node_count::bigint,
           p_shape.node_count * greatest(p_shape.gpus_per_node, g.gpus)::bigint,
           p_shape.node_count * greatest(p_shape.cpus_per_node, g.cpus)::bigint
      from (select max(n.gpus) as gpus, max(n.cpus) as cpus
              from odc.node_group as n
             where p_shape.exclusive and n.partition_ids && p_shape.partition_ids
               and (p_shape.gpu_type is null or n.gpu_type = p_shape.gpu_type)) as g
     where p_shape.components is null
     union all
    select p_shape.node_count::bigint, sum(c.node_count * greatest(c.gpus_per_node, g.gpus)::bigint)::bigint,
           sum(c.node_count * greatest(c.cpus_per_node, g.cpus)::bigint)::bigint
      from jsonb_populate_recordset(null::odc.shape, p_shape.components) as c
     cross join lateral (select max(n.gpus) as gpus, max(n.cpus) as cpus
                           from odc.node_group as n
                          where c.exclusive and n.partition_ids && p_shape.partition_ids
                            and (c.gpu_type is null or n.gpu_type = c.gpu_type)) as g
    having p_shape.components is not null
$$;
