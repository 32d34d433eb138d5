-- odc.delete_booking: release the nodes of a booking, by an operator. Its pending jobs are held; its running jobs
-- continue until their limit.
-- Returns    the deleted booking, as JSON text
-- Locks      the turn; booking; pending
-- Raises     OD013 NotOwner, OD012 WrongState, OD018 UnknownBooking
create or replace function odc.delete_booking(p_actor jsonb, p_name text, p_now timestamptz)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    b booking;
begin
    perform _check_operator(p_actor, 'delete bookings');
    perform _take_turn(p_now);
    b := _live_booking(p_name);
    update booking set state = 'DELETED', state_at = p_now where id = b.id;
    insert into event (at, kind, actor, detail)
    values (p_now, 'booking_deleted', p_actor ->> 'user', _booking_facts(b));
    perform _hold_booked(b.id, p_actor ->> 'user', p_now);
    perform _wake();
    return _render_bookings(array[b.id], p_now) -> 0;
end;
$$;
