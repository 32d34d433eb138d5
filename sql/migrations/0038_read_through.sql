-- Output of members that still run is stored too, so that a new leader continues to read where the last one stopped.
-- Locks kept_output for an instant: the new column has no default.

-- The log was read up to this position (the time of a line, and how many bytes of it); null: the member has ended.
alter table kept_output add column read_through text;

drop function if exists odc.keep_output(bigint, integer, integer, bytea, bigint, timestamptz);
