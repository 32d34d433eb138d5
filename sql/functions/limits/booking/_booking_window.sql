-- odc._booking_window: the current or next occurrence of a booking.
-- Returns    nulls if there is none
create or replace function odc._booking_window(
    p_booking odc.booking, p_now timestamptz, out starts_at timestamptz, out ends_at timestamptz)
language sql stable as $$
    select o.starts_at, o.ends_at
      from odc._occurrences(
           p_booking.starts_at, p_booking.duration_s, p_booking.repeats, p_booking.repeats_until, p_booking.zone, p_now,
           greatest(p_now, p_booking.starts_at) + interval '8 days') as o
     limit 1
$$;
