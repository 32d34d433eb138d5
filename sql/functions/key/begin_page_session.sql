-- odc.begin_page_session: a ticket of the page becomes a session. It is the ticket's row, so that whoever ends its key
-- at the same moment ends it, and of two who use it one comes in.
-- Returns    when the session expires; null: the ticket was used, has ended, or is too old
-- Locks      api_key row for update
create or replace function odc.begin_page_session(
    p_ticket text, p_digest text, p_prefix text, p_now timestamptz, p_expires_at timestamptz)
returns timestamptz
language sql volatile as $$
    update odc.api_key
       set digest = p_digest, kind = 'session', prefix = p_prefix, made_at = p_now, expires_at = least(p_expires_at, until_at)
     where digest = p_ticket and kind = 'ticket' and active and expires_at > p_now
    returning expires_at
$$;
