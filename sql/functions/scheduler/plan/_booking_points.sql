-- odc._booking_points: the points of a pass, at first those of bookings. A point is a moment at which a node's free
-- amounts matter: the planned start of a protected job that may run on the node, or a booking, from whose start until
-- its end nothing is free. ../README.md has a picture.
-- Returns    one array: per node its newest point, and then nine values per point: 0 the node's next point, 1 node,
--            2 protected job, or minus the booking id, 3 moment, 4 end, microseconds from p_now, 5 GPUs, 6 CPUs and 7 MiB
--            free from then on, 8 whether the node is pinned (reserved) for it. A point is the position of its first
--            value. 0: none
create or replace function odc._booking_points(p_now timestamptz, p_node_ids integer[])
returns bigint[]
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_nodes constant integer := greatest(1, cardinality(p_node_ids));
    v_points bigint[] := array_fill(0::bigint, array[v_nodes]);
    v_booking record;
    v_point integer := v_nodes + 1;
begin
    if not exists (select from booking where state in ('PLANNED', 'ACTIVE')) then
        return v_points;
    end if;
    for v_booking in
        select n.ord as node, p.booking_id,
               (date_part('epoch', greatest(p.starts_at, p_now) - p_now) * 1000000)::bigint as at,
               (date_part('epoch', p.ends_at - p_now) * 1000000)::bigint as until
          from _plan_bookings(p_now) as p
          join unnest(p_node_ids) with ordinality as n (id, ord) on n.id = p.node_id
         order by p.starts_at, n.ord, p.booking_id
    loop
        v_points[v_point] := v_points[v_booking.node];  v_points[v_point + 1] := v_booking.node;
        v_points[v_point + 2] := -v_booking.booking_id;  v_points[v_point + 3] := v_booking.at;  v_points[v_point + 4] := v_booking.until;
        v_points[v_point + 5] := 0;  v_points[v_point + 6] := 0;  v_points[v_point + 7] := 0;  v_points[v_point + 8] := 1;
        v_points[v_booking.node] := v_point;
        v_point := v_point + 9;
    end loop;
    return v_points;
end;
$$;
