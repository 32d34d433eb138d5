-- odc._regroup_nodes: give every node its group and its `up`. Call after any change of nodes or partitions.
-- Locks      node_free rows of nodes that changed
create or replace function odc._regroup_nodes()
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    create temp table if not exists regroup (
        node_id integer, up boolean, gpu_type text, gpus integer, cpus integer, mem_mib integer,
        efa_domain text, features text[], partition_ids integer[]) on commit drop;
    truncate regroup;
    insert into regroup
    select n.id, n.state = 'UP', n.gpu_type, n.gpus, n.cpus, n.mem_mib,
           nullif(concat_ws('/', n.zone, n.efa_domain), ''),
           array(select f from unnest(n.features) as f order by f),
           array(select p.id from partition as p
                  where p.all_nodes
                     or exists (select from partition_node as m where m.partition_id = p.id and m.node_id = n.id)
                  order by p.id)
      from node as n;
    insert into node_group (gpu_type, gpus, cpus, mem_mib, efa_domain, features, partition_ids)
    select distinct gpu_type, gpus, cpus, mem_mib, efa_domain, features, partition_ids from regroup
    on conflict do nothing;
    update node_free as f
       set group_id = g.id, up = r.up
      from regroup as r
      join node_group as g
        on (g.gpu_type, g.gpus, g.cpus, g.mem_mib, g.features, g.partition_ids)
         = (r.gpu_type, r.gpus, r.cpus, r.mem_mib, r.features, r.partition_ids)
       and g.efa_domain is not distinct from r.efa_domain
     where f.node_id = r.node_id and (f.group_id, f.up) is distinct from (g.id, r.up);
    insert into node_free (node_id, group_id, up, gpu_mask, gpus, cpus, mem_mib)
    select r.node_id, g.id, r.up, (1::bigint << r.gpus) - 1, r.gpus, r.cpus, r.mem_mib
      from regroup as r
      join node_group as g
        on (g.gpu_type, g.gpus, g.cpus, g.mem_mib, g.features, g.partition_ids)
         = (r.gpu_type, r.gpus, r.cpus, r.mem_mib, r.features, r.partition_ids)
       and g.efa_domain is not distinct from r.efa_domain
        on conflict do nothing;
    delete from node_group as g where not exists (select from node_free as f where f.group_id = g.id);
    drop table regroup;
end;
$$;
