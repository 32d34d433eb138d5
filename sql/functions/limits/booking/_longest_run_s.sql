-- odc._longest_run_s: the longest time limit with which a job can run inside a booking if it starts at a moment.
-- Returns    seconds; null: the booking is over by then
create or replace function odc._longest_run_s(p_booking odc.booking, p_at timestamptz)
returns integer
language sql stable as $$
    select max(extract(epoch from o.ends_at - greatest(o.starts_at, p_at)))::integer
      from odc._occurrences(
           p_booking.starts_at, p_booking.duration_s, p_booking.repeats, p_booking.repeats_until, p_booking.zone, p_at,
           greatest(p_at, p_booking.starts_at) + interval '15 days') as o
$$;
