-- odc.delete_node: delete a declared node without jobs, by an operator. Its row stays, for the jobs that ran there; it is
-- not listed, and belongs to no partition.
-- Arguments  p_actor  {user, uid, operator}
-- Locks      the turn; node by name, node_free
-- Raises     OD013 NotOwner, OD007 UnknownNode; OD012 WrongState: it was not declared, or jobs run there
create or replace function odc.delete_node(p_actor jsonb, p_name text, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    n      node;
    v_jobs text;
begin
    perform _check_operator(p_actor, 'delete nodes');
    perform _take_turn(p_now);
    perform _check_nodes(array[p_name]);
    select * into n from node where name = p_name for update;
    perform _refuse_undeclared(n);
    v_jobs := _jobs_on(n.id);
    if v_jobs is not null then
        raise exception using errcode = 'OD012',
            message = format('node %s has jobs: %s', p_name, v_jobs),
            hint = format('Drain it first, and wait for them: odcctl node drain %s --reason TEXT.', p_name);
    end if;
    update node set state = 'DOWN', reason = 'deleted', reason_by = p_actor ->> 'user', state_at = p_now where id = n.id;
    insert into elastic_gone (node_id) values (n.id) on conflict do nothing;
    delete from partition_node where node_id = n.id;
    insert into event (at, kind, actor, node_id) values (p_now, 'node_deleted', p_actor ->> 'user', n.id);
    perform _regroup_nodes();
    perform _wake();
end;
$$;
