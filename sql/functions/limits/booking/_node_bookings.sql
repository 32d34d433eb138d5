-- odc._node_bookings: per booked node its current booking and its next one.
-- Arguments  p_actor  as for _booking_label
-- Returns    JSON objects {id, name, kind, starts_at, ends_at}; null: none
create or replace function odc._node_bookings(p_now timestamptz, p_actor jsonb default null)
returns table (node_id integer, booking json, next_booking json)
language sql stable as $$
    with window_of as materialized (
        select b.id, o.starts_at, o.starts_at <= p_now as now,
               json_build_object('id', b.id, 'name', odc._booking_label(b, p_actor), 'kind', b.kind,
                                 'starts_at', odc._iso(o.starts_at), 'ends_at', odc._iso(o.ends_at)) as described
          from odc.booking as b
         cross join lateral (
               select w.starts_at, w.ends_at
                 from odc._occurrences(b.starts_at, b.duration_s, b.repeats, b.repeats_until, b.zone, p_now,
                                       greatest(p_now, b.starts_at) + interval '15 days') as w
                limit 2) as o
         where b.state in ('PLANNED', 'ACTIVE')
    ), first as (
        select distinct on (m.node_id, w.now) m.node_id, w.now, w.described
          from window_of as w
          join odc.booking_node as m on m.booking_id = w.id
         order by m.node_id, w.now, w.starts_at, w.id
    )
    select coalesce(n.node_id, t.node_id), n.described, t.described
      from (select * from first as f where f.now) as n
      full join (select * from first as f where not f.now) as t on t.node_id = n.node_id
$$;
