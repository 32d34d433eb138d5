-- odc.create_node: declare a node, by an operator. It stays until it is deleted, also without being in the inventory.
-- Arguments  p_actor  {user, uid, operator}
--            p_ask    as _read_node
-- Locks      the turn; node by name, node_free
-- Raises     OD013 NotOwner, OD010 BadRequest; OD012 WrongState: another node has this name, or jobs still run there.
--            The same request again changes nothing
create or replace function odc.create_node(p_actor jsonb, p_ask jsonb, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_old  node;
    v_jobs text;
    n      node;
begin
    perform _check_operator(p_actor, 'declare nodes');
    perform _take_turn(p_now);
    select * into v_old from node where name = p_ask ->> 'name' for update;
    n := _read_node(null::node, p_ask);
    -- Free for use: it was deleted, or a daemon declared it and no longer does.
    if v_old.id is not null and not _is_gone(v_old)
       and not (v_old.declared and v_old.state = 'DOWN' and v_old.reason_by is null) then
        if v_old.declared and (v_old.gpu_type, v_old.gpus, v_old.cpus, v_old.mem_mib, v_old.zone, v_old.efa_domain, v_old.topology, v_old.features)
                              is not distinct from (n.gpu_type, n.gpus, n.cpus, n.mem_mib, n.zone, n.efa_domain, n.topology, n.features) then
            return;
        end if;
        raise exception using errcode = 'OD012',
            message = format('node %s exists already', v_old.name),
            hint = format('Change it: odcctl node update %s, or delete it first.', v_old.name);
    end if;
    v_jobs := _jobs_on(v_old.id);
    if v_jobs is not null then
        raise exception using errcode = 'OD012',
            message = format('jobs of an earlier node %s have not ended: %s', v_old.name, v_jobs),
            hint = 'Wait for them, or cancel them.';
    end if;
    n.state := 'UP';
    n.reason_by := p_actor ->> 'user';
    n.state_at := p_now;
    perform _write_node(p_actor, n, true, p_now);
end;
$$;
