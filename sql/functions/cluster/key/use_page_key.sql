-- odc.use_page_key: the user of a ticket or a session of the page, as use_api_key, and where it is valid.
-- Returns    as_peer: it was requested on the socket, by a user of the daemon's machine; otherwise by an API key
-- Locks      api_key row for update, if the last recorded use is a minute old
create or replace function odc.use_page_key(p_digest text, p_now timestamptz)
returns table (user_name text, uid integer, gid integer, peer_uid integer, place text, as_peer boolean)
language sql volatile as $$
    select u.user_name, u.uid, u.gid, k.peer_uid, k.place, k.origin is null
      from odc.use_api_key(p_digest, p_now) as u, odc.api_key as k
     where k.digest = p_digest
$$;
