-- odc.begin_page_session: turn a ticket of the page into a session. The session is the ticket's row, so ending its key
-- at the same moment ends it, too, and if two requests use the ticket, only one succeeds.
-- Arguments  p_peer_uid  the uid of its user on the daemon's machine; null: the request comes from elsewhere
--            p_place     where the session is valid, as odcd.page.places writes it; null: made by an older daemon
-- Returns    when the session expires; null: the ticket was used, has ended, is too old, or is for another user's socket
-- Locks      api_key row for update
create or replace function odc.begin_page_session(
    p_ticket text, p_digest text, p_prefix text, p_now timestamptz, p_expires_at timestamptz,
    p_peer_uid integer default null, p_place text default null)
returns timestamptz
language sql volatile as $$
    update odc.api_key
       set digest = p_digest, kind = 'session', prefix = p_prefix, made_at = p_now, expires_at = least(p_expires_at, until_at),
           peer_uid = p_peer_uid, place = p_place
     where digest = p_ticket and kind = 'ticket' and active and expires_at > p_now
       and (peer_uid is null or p_peer_uid is null or peer_uid = p_peer_uid)
    returning expires_at
$$;
