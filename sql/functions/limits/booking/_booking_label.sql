-- odc._booking_label: the name under which a user sees a booking in lists of nodes, plans and causes: its own name if the
-- user may see the booking, or if it is for maintenance, which concerns everybody; else #ID.
-- Arguments  p_actor  as for _sees_booking
create or replace function odc._booking_label(p_booking odc.booking, p_actor jsonb)
returns text
language sql stable as $$
    select case when p_booking.kind = 'maintenance' or odc._sees_booking(p_booking, p_actor)
                then p_booking.name else '#' || p_booking.id end
$$;
