-- odc.change_node: change the properties of a declared node, by an operator.
-- Arguments  p_actor  {user, uid, operator}
--            p_ask    as _read_node, without name; properties that are left out stay
-- Locks      the turn; node by name, node_free
-- Raises     OD013 NotOwner, OD007 UnknownNode, OD010 BadRequest; OD012 WrongState: it was not declared, or jobs run there
--            and its size or type would change
create or replace function odc.change_node(p_actor jsonb, p_name text, p_ask jsonb, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_old  node;
    v_jobs text;
    n      node;
begin
    perform _check_operator(p_actor, 'change nodes');
    perform _take_turn(p_now);
    perform _check_nodes(array[p_name]);
    select * into v_old from node where name = p_name for update;
    perform _refuse_undeclared(v_old);
    n := _read_node(v_old, p_ask - 'name');
    if n is not distinct from v_old then
        return;
    end if;
    v_jobs := _jobs_on(v_old.id);
    if v_jobs is not null and (n.gpu_type, n.gpus, n.cpus, n.mem_mib)
                              is distinct from (v_old.gpu_type, v_old.gpus, v_old.cpus, v_old.mem_mib) then
        raise exception using errcode = 'OD012',
            message = format('the size of node %s cannot change while jobs run there: %s', p_name, v_jobs),
            hint = format('Drain it first, and wait for them: odcctl node drain %s --reason TEXT.', p_name);
    end if;
    perform _write_node(p_actor, n, false, p_now);
end;
$$;
