-- odc._refuse_no_booking: report that a name has no current or future booking.
-- Arguments  p_actor  as for _sees_booking: only bookings that the user may see are named
-- Raises     OD012 WrongState: it is over; OD018 UnknownBooking; always one of them
create or replace function odc._refuse_no_booking(p_name text, p_actor jsonb)
returns void
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_past  booking;
    v_known text := (select string_agg(b.name, ', ' order by b.name)
                       from (select b.name from booking as b
                              where b.state in ('PLANNED', 'ACTIVE') and _sees_booking(b, p_actor)
                              order by b.name limit 20) as b);
begin
    select * into v_past from booking as b where b.name = p_name and _sees_booking(b, p_actor) order by b.id desc limit 1;
    raise exception using
        errcode = case when v_past.id is null then 'OD018' else 'OD012' end,
        message = case when v_past.id is null then format('booking "%s" does not exist', p_name)
                       when v_past.state = 'DELETED' then format('booking "%s" was deleted at %s', p_name, _iso(v_past.state_at))
                       else format('booking "%s" ended at %s', p_name, _iso(v_past.state_at)) end,
        hint = case when v_known is not null then format('Bookings: %s.', v_known)
                    when (p_actor ->> 'operator')::boolean then 'There are no bookings now.'
                    else 'There are no bookings now that you may use.' end;
end;
$$;
