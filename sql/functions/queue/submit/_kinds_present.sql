-- odc._kinds_present: the GPU types, features and disk space of the nodes that exist, and of those that elastic groups
-- could have.
create or replace function odc._kinds_present()
returns table (gpu_type text, features text[], tmp_mib integer)
language sql stable as $$
    select g.gpu_type, g.features, g.tmp_mib
      from odc.node_group as g
     where exists (select from odc.node_free as f join odc.node as n on n.id = f.node_id
                    where f.group_id = g.id and not odc._is_gone(n))
     union
    select e.gpu_type, e.features, e.tmp_mib from odc.elastic_group as e
$$;
