-- odc._why_nodes: the nodes that fit a pending job but are down, drained, or used by software that odc does not run; at
-- most 16.
create or replace function odc._why_nodes(p_job_id bigint)
returns table (text text, node text)
language sql stable as $$
    select case when f.up then format('%s of %s are used by programs outside odc',
                                      odc._amounts(bit_count(n.foreign_gpu_mask::bit(64))::integer, n.foreign_cpus,
                                                   n.foreign_mem_mib), n.name)
                else format('%s is %s%s', n.name, case n.state when 'DRAIN' then 'drained' else 'down' end,
                            coalesce(': ' || n.reason || coalesce(' (by ' || n.reason_by || ')', ''), '')) end,
           n.name
      from odc.pending as p
      join odc.shape as w on w.id = p.shape_id
      join odc.node_free as f on true
      join odc.node as n on n.id = f.node_id
      join odc.node_group as g on g.id = f.group_id
     where p.job_id = p_job_id and not odc._is_gone(n)
       -- Of a heterogeneous job, the nodes that fit one of its components.
       and exists (select from jsonb_populate_recordset(w, coalesce(w.components, '[{}]')) as s where
           (not f.up
            or n.gpus - bit_count(n.foreign_gpu_mask::bit(64)) < case when s.exclusive then n.gpus else s.gpus_per_node end
            or n.cpus - n.foreign_cpus < case when s.exclusive then n.cpus else s.cpus_per_node end
            or n.mem_mib - n.foreign_mem_mib < case when s.exclusive then n.mem_mib else s.mem_per_node_mib end)
       and g.partition_ids && s.partition_ids
       and (s.gpu_type is null or n.gpu_type = s.gpu_type)
       and n.gpus >= s.gpus_per_node and n.cpus >= s.cpus_per_node and n.mem_mib >= s.mem_per_node_mib
       and n.tmp_mib >= s.tmp_per_node_mib
       and (s.constraint_expr is null or odc._matches_features(s.constraint_expr, n.features))
       and (s.node_list is null or n.name = any (s.node_list))
       and (s.exclude_nodes is null or n.name <> all (s.exclude_nodes)))
     order by f.up, length(n.name), n.name
     limit 16
$$;
