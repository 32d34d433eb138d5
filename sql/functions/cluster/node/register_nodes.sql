-- odc.register_nodes: store an executor's inventory.
-- A node takes the state in the inventory unless an operator set one; a quarantined node does not go UP. If a node's size
-- changes while jobs use part of it, it keeps its old size until they end; the next inventory changes it.
-- Arguments  p_nodes  array of {name, gpu_type, gpus, cpus, mem_mib, zone, efa_domain, topology, features, declared,
--                     state, reason, foreign_gpus, foreign_cpus, foreign_mem_mib, tmp_mib};
--                     topology: the layers of its network, outermost first, the last its block;
--                     state: UP, DRAIN or DOWN, as the node's manager reports it; foreign: used by software that odc
--                     does not run; tmp_mib: the disk space for jobs, null: unknown
--            p_whole  true: nodes that are not listed go DOWN
--            p_keep   false: also those that an operator declared
-- Locks      term for key share; if anything changes, the turn, node by name, node_free
-- Raises     OD020 LeadershipLost; OD010 for a node with impossible sizes
create or replace function odc.register_nodes(p_term bigint, p_nodes jsonb, p_whole boolean, p_now timestamptz, p_keep boolean default true)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_bad text;
begin
    perform _hold_term(p_term);
    select string_agg(format('%s (%s GPUs, %s CPUs, %s MiB)', name, gpus, cpus, mem_mib), ', ' order by name)
      into v_bad
      from _seen_nodes(p_nodes)
     where name is null or name = '' or gpus not between 0 and 62 or cpus < 1 or mem_mib < 1;
    if v_bad is not null then
        raise exception using errcode = 'OD010',
            message = format('invalid node sizes: %s', v_bad),
            hint = 'A node has 0 to 62 GPUs, at least 1 CPU and at least 1 MiB of memory.';
    end if;
    if not _inventory_differs(p_nodes, p_whole, p_keep) then
        return;
    end if;

    perform _take_turn(p_now);
    insert into gpu_type (name, label, gpus_per_node, cpus_per_node, mem_per_node_mib)
    select distinct on (gpu_type) gpu_type, gpu_type, gpus, cpus, mem_mib from _seen_nodes(p_nodes) order by gpu_type, name
    on conflict do nothing;
    perform from node order by name for update;
    insert into node (name, gpu_type, gpus, cpus, mem_mib, zone, efa_domain, topology, features, declared, tmp_mib, state_at)
    select name, gpu_type, gpus, cpus, mem_mib, zone, efa_domain, topology, features, declared, tmp_mib, p_now
      from _seen_nodes(p_nodes) order by length(name), name
        on conflict do nothing;
    update node as n
       set gpu_type = s.gpu_type, gpus = s.gpus, cpus = s.cpus, mem_mib = s.mem_mib,
           foreign_gpu_mask = 0, foreign_cpus = 0, foreign_mem_mib = 0
      from _seen_nodes(p_nodes) as s
     where s.name = n.name
       and (n.gpu_type, n.gpus, n.cpus, n.mem_mib) is distinct from (s.gpu_type, s.gpus, s.cpus, s.mem_mib)
       and not exists (select from allocation as a where a.node_id = n.id);
    delete from node_free as f using node as n, node_group as g
     where f.node_id = n.id and g.id = f.group_id and f.jobs = 0
       and (n.gpu_type, n.gpus, n.cpus, n.mem_mib) is distinct from (g.gpu_type, g.gpus, g.cpus, g.mem_mib);
    update node as n
       set zone = s.zone, efa_domain = s.efa_domain, topology = s.topology, features = s.features,
           declared = s.declared, tmp_mib = s.tmp_mib
      from _seen_nodes(p_nodes) as s
     where s.name = n.name
       and (n.zone, n.efa_domain, n.topology, n.features, n.declared, n.tmp_mib)
           is distinct from (s.zone, s.efa_domain, s.topology, s.features, s.declared, s.tmp_mib);
    with reported as (
        update node as n
           set state = s.state, reason = s.reason, reason_by = s.reason_by,
               state_at = case when n.state = s.state then n.state_at else p_now end
          from _seen_nodes(p_nodes) as s
         where s.name = n.name and (n.state, n.reason, n.reason_by) is distinct from (s.state, s.reason, s.reason_by)
           and _follows_inventory(n, true, p_keep)
        returning n.id, n.state, n.reason, n.state_at
    ), missing as (
        update node as n set state = 'DOWN', reason = 'not in the inventory', reason_by = null, state_at = p_now
         where p_whole and n.state <> 'DOWN'
           and _follows_inventory(n, false, p_keep)
           and not exists (select from _seen_nodes(p_nodes) as s where s.name = n.name)
        returning n.id, n.state, n.reason, n.state_at
    )
    insert into event (at, kind, actor, node_id, detail)
    select p_now, 'node_' || lower(c.state::text), 'odcd', c.id, jsonb_strip_nulls(jsonb_build_object('reason', c.reason))
      from (select * from reported union all select * from missing) as c
     where c.state_at = p_now
     order by c.id;
    delete from elastic_gone as e using node as n, _seen_nodes(p_nodes) as s
     where n.id = e.node_id and s.name = n.name and s.declared and n.state <> 'DOWN';
    perform _regroup_nodes();
    perform _count_foreign(p_nodes);
    perform _wake();
end;
$$;
