-- odc._seen_nodes: the nodes of an inventory, in the form of register_nodes. A quarantined node does not go UP.
create or replace function odc._seen_nodes(p_nodes jsonb)
returns table (
    name text, gpu_type text, gpus integer, cpus integer, mem_mib integer,
    zone text, efa_domain text, topology text[], features text[], declared boolean,
    state odc.node_state, reason text, reason_by text,
    foreign_gpus integer, foreign_cpus integer, foreign_mem_mib integer, tmp_mib integer)
language sql stable
begin atomic
    select r.name, r.gpu_type, r.gpus, r.cpus, r.mem_mib, r.zone, r.efa_domain,
           coalesce(r.topology, '{}'), coalesce(r.features, '{}'), coalesce(r.declared, false),
           case when q.node_id is null then coalesce(r.state, 'UP') else 'DRAIN' end,
           case when q.node_id is null then r.reason else q.reason end,
           case when q.node_id is not null then 'odcd' end,
           coalesce(r.foreign_gpus, 0), coalesce(r.foreign_cpus, 0), coalesce(r.foreign_mem_mib, 0),
           least(coalesce(r.tmp_mib, 0), 2147483647)::integer
      from jsonb_to_recordset(p_nodes) as r (
           name text, gpu_type text, gpus integer, cpus integer, mem_mib integer,
           zone text, efa_domain text, topology text[], features text[], declared boolean,
           state odc.node_state, reason text, foreign_gpus integer, foreign_cpus integer, foreign_mem_mib integer,
           tmp_mib bigint)
      left join (odc.node_quarantine as q join odc.node as n on n.id = q.node_id and q.drained)
        on n.name = r.name and coalesce(r.state, 'UP') = 'UP';
end;
