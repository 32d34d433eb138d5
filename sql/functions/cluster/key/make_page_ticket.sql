-- odc.make_page_ticket: store a ticket of the page, which becomes a session once.
-- Arguments  p_key  digest of the API key that requests it: the ticket and its session end with it; null: requested on
--                   the socket
--            p_peer_uid  only this user's sockets may use it on the daemon's machine; null: the first that does
-- Returns    false: that key has ended
-- Locks      api_key row of the key, for share
create or replace function odc.make_page_ticket(
    p_digest text, p_prefix text, p_user text, p_uid integer, p_gid integer, p_key text, p_now timestamptz,
    p_expires_at timestamptz, p_peer_uid integer default null)
returns boolean
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_key   api_key;
    v_until timestamptz;
begin
    if p_key is not null then
        select * into v_key from api_key where digest = p_key and active and expires_at > p_now for share;
        if v_key.digest is null then
            return false;
        end if;
        v_until := coalesce(v_key.until_at, v_key.expires_at);
    end if;
    insert into api_key (digest, kind, user_name, uid, gid, made_at, expires_at, prefix, until_at, origin, peer_uid)
    values (p_digest, 'ticket', p_user, p_uid, p_gid, p_now, least(p_expires_at, v_until), p_prefix, v_until,
            coalesce(v_key.origin, v_key.digest), p_peer_uid);
    return true;
end;
$$;
