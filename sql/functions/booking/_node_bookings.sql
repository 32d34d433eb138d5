-- odc._node_bookings: per booked node the booking that has it now and the one that has it next.
-- Returns    JSON objects {id, name, kind, starts_at, ends_at}; null: none
create or replace function odc._node_bookings(p_now timestamptz)
returns table (node_id integer, booking json, next_booking json)
language sql stable as $$
    with shown as (
        select distinct on (w.node_id, w.starts_at <= p_now)
               w.node_id, w.starts_at <= p_now as now,
               json_build_object('id', b.id, 'name', b.name, 'kind', b.kind,
                                 'starts_at', odc._iso(w.starts_at), 'ends_at', odc._iso(w.ends_at)) as told
          from odc._plan_bookings(p_now) as w
          join odc.booking as b on b.id = w.booking_id
         order by w.node_id, w.starts_at <= p_now, w.starts_at
    )
    select s.node_id, max(s.told::text) filter (where s.now)::json, max(s.told::text) filter (where not s.now)::json
      from shown as s
     group by s.node_id
$$;
