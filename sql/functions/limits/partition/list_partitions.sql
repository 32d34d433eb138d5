-- odc.list_partitions: every partition with its limits and its nodes, the default one first.
-- Arguments  p_names  only these; null: all
-- Returns    a JSON array; plan_depth is its policy's
create or replace function odc.list_partitions(p_names text[] default null)
returns text
language sql stable as $$
    select coalesce(json_agg(row_to_json(x)), '[]')::text
      from (
          select p.name, p.state, p.is_default, p.policy, p.placement, p.tier,
                 y.plan_depth,
                 p.max_time_limit_s, p.default_time_limit_s, p.max_nodes, p.def_mem_per_cpu_mib, p.all_nodes,
                 odc._limits_json('partition', p.id) as limits,
                 coalesce(m.node_names, '{}') as node_names,
                 coalesce(m.gpus, 0) as gpus,
                 coalesce(m.gpus_free, 0) as gpus_free,
                 coalesce(m.gpu_types, '{}') as gpu_types
            from odc.partition as p
            join odc.policy as y on y.name = p.policy
            left join lateral (
                select array_agg(n.name order by length(n.name), n.name) as node_names,
                       sum(n.gpus) as gpus,
                       sum(f.gpus) filter (where n.state = 'UP') as gpus_free,
                       array_agg(distinct n.gpu_type order by n.gpu_type) as gpu_types
                  from odc.node as n
                  join odc.node_free as f on f.node_id = n.id
                 where not odc._is_gone(n)
                   and (p.all_nodes
                        or exists (select from odc.partition_node as pn
                                    where pn.partition_id = p.id and pn.node_id = n.id))
            ) as m on true
           where p_names is null or p.name = any (p_names)
           order by p.is_default desc, p.name
      ) as x
$$;
