-- odc.edit_qos: change a QOS, by an operator.
-- Arguments  p_actor  {user, uid, operator}
--            p_ask    as _write_qos
-- Returns    the QOS as JSON text
-- Locks      the turn
-- Raises     OD004 UnknownQos, OD013 NotOwner, and what _write_qos raises
create or replace function odc.edit_qos(p_actor jsonb, p_name text, p_ask jsonb, p_now timestamptz)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_id  integer;
    v_old jsonb;
begin
    perform _check_operator(p_actor, 'change QOS');
    perform _take_turn(p_now);
    v_id := (_find_qos(array[p_name]))[1];
    v_old := list_qos(p_name)::jsonb -> 0;
    perform _write_qos(v_id, p_ask);
    insert into event (at, kind, actor, detail)
    values (p_now, 'qos_edited', p_actor ->> 'user',
            jsonb_build_object('qos', p_name, 'old', _of_keys(v_old, p_ask), 'new', p_ask));
    perform _wake();
    return list_qos(p_name)::json ->> 0;
end;
$$;
