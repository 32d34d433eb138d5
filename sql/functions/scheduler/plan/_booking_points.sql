-- odc._booking_points: the bookings as points, in the form that decide uses. A point is a moment at which a node's free
-- amounts matter; each node has a list of points. From a booking's start until its end nothing is free.
-- Returns    in order of time: node (its position in p_node_ids); head: minus the booking id; at and until: microseconds
--            from p_now; next: the node's previous point; first: per node its last point. 0: none
create or replace function odc._booking_points(
    p_now timestamptz, p_node_ids integer[],
    out nodes integer[], out heads integer[], out ats bigint[], out untils bigint[], out next integer[],
    out first integer[])
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_column
begin
    first := array_fill(0, array[greatest(1, cardinality(p_node_ids))]);
    if not exists (select from booking where state in ('PLANNED', 'ACTIVE')) then
        return;
    end if;
    select array_agg(w.x order by w.place), array_agg(-w.booking_id order by w.place),
           array_agg(w.at order by w.place), array_agg(w.until order by w.place),
           array_agg(w.before order by w.place)
      into nodes, heads, ats, untils, next
      from (select v.*, coalesce(lag(v.place) over (partition by v.x order by v.place), 0) as before
              from (select n.ord::integer as x, b.booking_id,
                           (date_part('epoch', greatest(b.starts_at, p_now) - p_now) * 1000000)::bigint as at,
                           (date_part('epoch', b.ends_at - p_now) * 1000000)::bigint as until,
                           row_number() over (order by b.starts_at, n.ord, b.booking_id)::integer as place
                      from _plan_bookings(p_now) as b
                      join unnest(p_node_ids) with ordinality as n (id, ord) on n.id = b.node_id) as v) as w;
    select array_agg(coalesce(l.place, 0) order by n.ord) into first
      from unnest(p_node_ids) with ordinality as n (id, ord)
      left join (select u.x, max(u.place)::integer as place from unnest(nodes) with ordinality as u (x, place)
                  group by u.x) as l on l.x = n.ord;
end;
$$;
