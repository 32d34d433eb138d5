-- odc.test_webhook: put a test message for the caller's webhook into the outbox.
-- Returns    its id, as in show_webhook; null: the user has reached the limit of notifications per hour
-- Locks      turn; as _fill_outbox
-- Raises     OD010 BadRequest: there is no webhook
create or replace function odc.test_webhook(p_actor jsonb, p_now timestamptz)
returns bigint
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_uid    constant integer := (p_actor ->> 'uid')::integer;
    v_before bigint;
begin
    perform _take_turn(p_now);
    select max(o.id) into v_before from outbox as o where o.uid = v_uid;
    if not exists (select from webhook as w where w.uid = v_uid) then
        raise exception using errcode = 'OD010',
            message = 'you have no webhook', hint = 'Set one with `odcctl notify set ADDRESS`.';
    end if;
    perform _fill_outbox(jsonb_build_array(jsonb_build_object(
        'uid', v_uid, 'user', p_actor ->> 'user', 'channel', 'webhook', 'kind', 'test',
        'facts', jsonb_build_object('user', p_actor ->> 'user', 'at', _iso(p_now)))), p_now);
    return (select max(o.id) from outbox as o where o.uid = v_uid and o.kind = 'test' and o.id > coalesce(v_before, 0));
end;
$$;
