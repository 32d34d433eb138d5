-- odc._inventory_differs: whether register_nodes would change anything. Most inventories are unchanged; then nothing is
-- locked.
-- Arguments  as register_nodes
create or replace function odc._inventory_differs(p_nodes jsonb, p_whole boolean, p_keep boolean)
returns boolean
language plpgsql stable set search_path = odc, pg_temp as $$
begin
    return (
        with seen as materialized (
            select * from _seen_nodes(p_nodes)
        )
        select exists (
                   select from seen as s
                     left join node as n on n.name = s.name
                     left join node_free as f on f.node_id = n.id
                    where n.id is null or f.node_id is null
                       or (n.gpu_type, n.gpus, n.cpus, n.mem_mib, n.zone, n.efa_domain, n.topology, n.features, n.declared, n.tmp_mib)
                          is distinct from
                          (s.gpu_type, s.gpus, s.cpus, s.mem_mib, s.zone, s.efa_domain, s.topology, s.features, s.declared,
                           s.tmp_mib)
                       or (n.state, n.reason, n.reason_by) is distinct from (s.state, s.reason, s.reason_by)
                          and _follows_inventory(n, true, p_keep)
                       or exists (
                              select from odc._foreign_use(n, s.gpus, s.cpus, s.mem_mib, s.foreign_gpus, s.foreign_cpus,
                                                           s.foreign_mem_mib) as o
                               where (bit_count(n.foreign_gpu_mask::bit(64)), n.foreign_cpus, n.foreign_mem_mib)
                                     <> (o.gpus::bigint, o.cpus, o.mem_mib)))
            or exists (
                   select from node as n
                    where not exists (select from seen as s where s.name = n.name)
                      and (n.foreign_gpu_mask <> 0 or n.foreign_cpus <> 0 or n.foreign_mem_mib <> 0
                           or p_whole and n.state <> 'DOWN' and _follows_inventory(n, false, p_keep))));
end;
$$;
