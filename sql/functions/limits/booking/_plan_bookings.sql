-- odc._plan_bookings: the nodes that are closed to all jobs except those of a booking, and when.
-- Returns    the current and future windows, in order of starts_at and node_id: the only one of a booking that does not
--            repeat; of a repeating one those of the next 60 days, and the next one however far away
create or replace function odc._plan_bookings(p_now timestamptz)
returns table (node_id integer, starts_at timestamptz, ends_at timestamptz, booking_id integer)
language sql stable as $$
    select n.node_id, o.starts_at, o.ends_at, b.id
      from odc.booking as b
     cross join lateral odc._occurrences(
           b.starts_at, b.duration_s, b.repeats, b.repeats_until, b.zone, p_now,
           greatest(p_now, b.starts_at) + interval '60 days') as o
      join odc.booking_node as n on n.booking_id = b.id
     where b.state in ('PLANNED', 'ACTIVE')
     order by o.starts_at, n.node_id, b.id
$$;
