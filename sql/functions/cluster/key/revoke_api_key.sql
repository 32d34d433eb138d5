-- odc.revoke_api_key: end one key of any user, and the tickets and sessions of the page that come from it; by an operator.
-- Arguments  p_prefix  the first characters of the key after odc_, at least 4
-- Returns    JSON {user, prefix, expires_at}: the key that was ended
-- Locks      api_key rows for update, the key first
-- Raises     OD012 WrongState: no valid key, or several ones, begin with p_prefix; OD013 NotOwner
create or replace function odc.revoke_api_key(p_actor jsonb, p_prefix text, p_now timestamptz)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_keys api_key[];
begin
    perform _check_operator(p_actor, 'revoke a key');
    select array_agg(k) into v_keys
      from api_key as k
     where k.kind = 'key' and k.active and k.expires_at > p_now and starts_with(k.prefix, p_prefix)
       and length(p_prefix) >= 4;
    if v_keys is null then
        raise exception using errcode = 'OD012',
            message = format('no valid key begins with "%s"', p_prefix),
            hint = 'List the valid keys: odcd token list.';
    elsif cardinality(v_keys) > 1 then
        raise exception using errcode = 'OD012',
            message = format('%s valid keys begin with "%s"', cardinality(v_keys), p_prefix),
            hint = 'Give all characters that `odcd token list` prints for the key.';
    elsif not end_api_key(v_keys[1].digest, p_now) then
        raise exception using errcode = 'OD012',
            message = format('key %s has ended meanwhile', v_keys[1].prefix),
            hint = 'List the valid keys: odcd token list.';
    end if;
    insert into event (at, kind, actor, detail)
    values (p_now, 'login_ended', p_actor ->> 'user',
            jsonb_build_object('user', v_keys[1].user_name, 'keys', 1, 'key', v_keys[1].prefix));
    return json_build_object('user', v_keys[1].user_name, 'prefix', v_keys[1].prefix,
                             'expires_at', _iso(v_keys[1].expires_at))::text;
end;
$$;
