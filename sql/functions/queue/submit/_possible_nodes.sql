-- odc._possible_nodes: nodes in any state with the requested type, features and names; equal nodes are counted
-- together. Elastic groups count with the nodes that they could have in addition; those they have removed do not count.
-- Arguments  p_*  null: any;  p_tmp_mib  the least disk space
-- Returns    domain: the EFA domain that a gang of whole nodes must stay in; null: it need not
create or replace function odc._possible_nodes(
    p_partition_ids integer[], p_gpu_type text, p_constraint text, p_node_list text[], p_exclude_nodes text[],
    p_tmp_mib integer)
returns table (partition_id integer, gpu_type text, gpus integer, cpus integer, mem_mib integer, domain text, node_count bigint)
language sql stable as $$
    select p.id, g.gpu_type, g.gpus, g.cpus, g.mem_mib, case when t.efa_per_node > 0 then g.efa_domain end, f.node_count
      from (select f.group_id, count(*) as node_count
              from odc.node_free as f
             where not exists (select from odc.elastic_gone as e where e.node_id = f.node_id and not f.up)
               and (p_node_list is null and p_exclude_nodes is null
                    or exists (select from odc.node as n
                                where n.id = f.node_id
                                  and (p_node_list is null or n.name = any (p_node_list))
                                  and (p_exclude_nodes is null or n.name <> all (p_exclude_nodes))))
             group by f.group_id) as f
      join odc.node_group as g on g.id = f.group_id
      join odc.gpu_type as t on t.name = g.gpu_type
      join unnest(p_partition_ids) as p (id) on p.id = any (g.partition_ids)
     where (p_gpu_type is null or g.gpu_type = p_gpu_type)
       and g.tmp_mib >= p_tmp_mib
       and (p_constraint is null or odc._matches_features(p_constraint, g.features))
     union all
    select p.id, g.gpu_type, g.gpus, g.cpus, g.mem_mib,
           case when t.efa_per_node > 0 then nullif(concat_ws('/', g.zone, g.efa_domain), '') end,
           g.max_nodes - (select count(*) from odc.elastic_instance as i where i.group_name = g.name and i.node_id is not null)
      from odc.elastic_group as g
      join odc.gpu_type as t on t.name = g.gpu_type
      join odc.partition as p on p.id = any (p_partition_ids) and p.all_nodes
     where p_node_list is null
       and g.max_nodes > (select count(*) from odc.elastic_instance as i where i.group_name = g.name and i.node_id is not null)
       and (p_gpu_type is null or g.gpu_type = p_gpu_type)
       and (g.tmp_mib >= p_tmp_mib or not g.learned)
       and (p_constraint is null or odc._matches_features(p_constraint, g.features))
$$;
