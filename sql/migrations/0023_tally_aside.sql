-- Final events that could not be counted, and why: none is lost, and none keeps those after it from being counted. Each new
-- leader tries them again.
create table tally_aside (
    event_id bigint primary key,
    why      text not null,
    at       timestamptz not null
);
