-- odc._write_node: store a declared node, and note it as an event.
-- Arguments  p_new  whether it is created, rather than changed
-- Locks      the caller holds the turn, and the node if it exists; node_free
create or replace function odc._write_node(p_actor jsonb, p_node node, p_new boolean, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    n node;
begin
    insert into gpu_type (name, label, gpus_per_node, cpus_per_node, mem_per_node_mib)
    values (p_node.gpu_type, p_node.gpu_type, p_node.gpus, p_node.cpus, p_node.mem_mib)
        on conflict do nothing;
    insert into node (name, gpu_type, gpus, cpus, mem_mib, zone, efa_domain, topology, features, declared, state, reason,
                      reason_by, state_at)
    values (p_node.name, p_node.gpu_type, p_node.gpus, p_node.cpus, p_node.mem_mib, p_node.zone, p_node.efa_domain,
            p_node.topology, p_node.features, true, p_node.state, p_node.reason, p_node.reason_by, p_node.state_at)
        on conflict (name) do update
       set gpu_type = excluded.gpu_type, gpus = excluded.gpus, cpus = excluded.cpus, mem_mib = excluded.mem_mib,
           zone = excluded.zone, efa_domain = excluded.efa_domain, topology = excluded.topology,
           features = excluded.features, declared = true, state = excluded.state, reason = excluded.reason,
           reason_by = excluded.reason_by, state_at = excluded.state_at,
           foreign_gpu_mask = 0, foreign_cpus = 0, foreign_mem_mib = 0
    returning * into n;
    delete from elastic_gone where node_id = n.id;
    delete from node_free as f using node_group as g
     where f.node_id = n.id and g.id = f.group_id and f.jobs = 0
       and (n.gpu_type, n.gpus, n.cpus, n.mem_mib) is distinct from (g.gpu_type, g.gpus, g.cpus, g.mem_mib);
    insert into event (at, kind, actor, node_id, detail)
    values (p_now, case when p_new then 'node_created' else 'node_changed' end, p_actor ->> 'user', n.id,
            jsonb_build_object('gpu_type', n.gpu_type, 'gpus', n.gpus, 'cpus', n.cpus, 'mem_mib', n.mem_mib,
                               'features', n.features));
    perform _regroup_nodes();
    perform _wake();
end;
$$;
