-- Final events that could not be counted, and why: none is lost, and none keeps those after it from being counted. Each new
-- leader tries them again.
create table tally_aside (
    event_id bigint primary key,
    why      text not null,
    at       timestamptz not null
);

-- What a node was at a time: each attempt that is counted asks it of its nodes. Locks node_past against writes while it is built.
create index node_past_at on node_past (id, past_at);
