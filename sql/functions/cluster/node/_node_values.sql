-- odc._node_values: the properties of every node by which the planner groups nodes; node_group has each combination once.
create or replace function odc._node_values()
returns table (
    node_id integer, up boolean, gpu_type text, gpus integer, cpus integer, mem_mib integer,
    efa_domain text, features text[], partition_ids integer[], tmp_mib integer)
language sql stable
begin atomic
    select n.id, n.state = 'UP', n.gpu_type, n.gpus, n.cpus, n.mem_mib,
           nullif(concat_ws('/', n.zone, n.efa_domain), ''),
           array(select f from unnest(n.features) as f order by f),
           array(select p.id from odc.partition as p
                  where p.all_nodes
                     or exists (select from odc.partition_node as m where m.partition_id = p.id and m.node_id = n.id)
                  order by p.id),
           n.tmp_mib
      from odc.node as n;
end;
