-- odc._regroup_nodes: set every node's group and its `up`. Call it after any change of nodes or partitions.
-- Locks      the caller holds the turn; node_free rows of nodes that changed; facts
create or replace function odc._regroup_nodes()
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_regrouped boolean;
begin
    -- Sorted, because the planner orders groups by their ids.
    insert into node_group (gpu_type, gpus, cpus, mem_mib, efa_domain, features, partition_ids, tmp_mib)
    select distinct gpu_type, gpus, cpus, mem_mib, efa_domain, features, partition_ids, tmp_mib from _node_values()
     order by gpu_type, gpus, cpus, mem_mib, efa_domain, features, partition_ids, tmp_mib
    on conflict do nothing;
    with placed as materialized (
        select v.node_id, g.id as group_id, v.up, v.gpus, v.cpus, v.mem_mib
          from _node_values() as v
          join node_group as g
            on (g.gpu_type, g.gpus, g.cpus, g.mem_mib, g.features, g.partition_ids, g.tmp_mib)
             = (v.gpu_type, v.gpus, v.cpus, v.mem_mib, v.features, v.partition_ids, v.tmp_mib)
           and g.efa_domain is not distinct from v.efa_domain
    ), moved as (
        update node_free as f
           set group_id = p.group_id, up = p.up
          from placed as p
         where f.node_id = p.node_id and (f.group_id, f.up) is distinct from (p.group_id, p.up)
    ), came as (
        insert into node_free (node_id, group_id, up, gpu_mask, gpus, cpus, mem_mib)
        select node_id, group_id, up, (1::bigint << gpus) - 1, gpus, cpus, mem_mib from placed
            on conflict do nothing
    )
    -- An earlier plan may rely on the node's old group: its partitions and its features. A node that
    -- changed its size or type has lost its row, and gets a new one here.
    select exists (select from placed as p left join node_free as f on f.node_id = p.node_id
                    where f.group_id is distinct from p.group_id)
      into v_regrouped;
    if v_regrouped then
        perform _raise_facts();
    end if;
    delete from node_group as g where not exists (select from node_free as f where f.group_id = g.id);
end;
$$;
