-- odc._refuse_no_booking: report that a name has no current or future booking.
-- Raises     OD012 WrongState: it is over; OD018 UnknownBooking; always one of them
create or replace function odc._refuse_no_booking(p_name text)
returns void
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_past  booking;
    v_known text := (select string_agg(b.name, ', ' order by b.name)
                       from (select name from booking where state in ('PLANNED', 'ACTIVE') order by name limit 20) as b);
begin
    select * into v_past from booking where name = p_name order by id desc limit 1;
    raise exception using
        errcode = case when v_past.id is null then 'OD018' else 'OD012' end,
        message = case when v_past.id is null then format('booking "%s" does not exist', p_name)
                       when v_past.state = 'DELETED' then format('booking "%s" was deleted at %s', p_name, _iso(v_past.state_at))
                       else format('booking "%s" ended at %s', p_name, _iso(v_past.state_at)) end,
        hint = case when v_known is null then 'There are no bookings now.' else format('Bookings: %s.', v_known) end;
end;
$$;
