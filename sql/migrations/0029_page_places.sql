-- Where a session of the page may be used from: on loopback by the sockets of one user alone.
-- Locks api_key for an instant.
set local lock_timeout = '30s';
alter table odc.api_key
    add column peer_uid integer,   -- of a ticket: whose sockets of this machine may use it; null: anybody's
    add column place    text;      -- of a session: where it was made, and is good; null: made by an older daemon
-- They get arguments that older daemons do not give.
drop function if exists odc.begin_page_session(text, text, text, timestamptz, timestamptz);
drop function if exists odc.make_page_ticket(text, text, text, integer, integer, text, timestamptz, timestamptz);
