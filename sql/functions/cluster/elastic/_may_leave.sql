-- odc._may_leave: whether a node that is to be removed is still drained by odcd, and unused.
create or replace function odc._may_leave(p_instance_id text)
returns boolean
language sql stable
begin atomic
    select exists (
        select from odc.elastic_instance as i
          join odc.node as n on n.id = i.node_id
          join odc.node_free as f on f.node_id = n.id
         where i.instance_id = p_instance_id and n.state = 'DRAIN' and n.reason_by = 'odcd' and f.jobs = 0
           and n.foreign_cpus = 0 and n.foreign_gpu_mask = 0 and n.foreign_mem_mib = 0
           and not exists (select from odc.allocation as a where a.node_id = n.id));
end;
