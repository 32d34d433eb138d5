-- odc.end_user_keys: end all API keys of a user, and the page's tickets and sessions; by an operator. A user who may
-- log in can do so again.
-- Returns    JSON {user, keys, page_sessions}: how many were valid until now
-- Locks      api_key rows for update, keys first, by digest
-- Raises     OD013 NotOwner
create or replace function odc.end_user_keys(p_actor jsonb, p_user text, p_now timestamptz)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_keys     integer;
    v_sessions integer;
begin
    perform _check_operator(p_actor, 'revoke the keys of a user');
    -- No more are made from them after this; the statement below sees those that were made before.
    perform from api_key where user_name = p_user and kind = 'key' and active order by digest for update;
    with ended as (
        -- Include expired ones: terminals that they opened continue until the login ends.
        update api_key set active = false where user_name = p_user and active returning kind, expires_at
    )
    select count(*) filter (where kind = 'key' and expires_at > p_now),
           count(*) filter (where kind = 'session' and expires_at > p_now) into v_keys, v_sessions from ended;
    if v_keys + v_sessions > 0 then
        insert into event (at, kind, actor, detail)
        values (p_now, 'login_ended', p_actor ->> 'user',
                jsonb_build_object('user', p_user, 'keys', v_keys, 'page_sessions', v_sessions));
    end if;
    return json_build_object('user', p_user, 'keys', v_keys, 'page_sessions', v_sessions)::text;
end;
$$;
