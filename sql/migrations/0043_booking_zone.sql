-- Bookings repeat at the same local time of a zone. Locks booking and booking_past for an instant.

alter table odc.booking
    add column zone text,   -- a repeated booking begins at the same time of day there; null: UTC
    add constraint booking_zone check (zone is null or repeats <> 'none');
alter table odc.booking_past add column zone text;

drop function if exists odc._occurrences(
    timestamptz, integer, odc.booking_repeat, timestamptz, timestamptz, timestamptz);
