-- odc._live_booking: the current or future booking of a name, locked for a change by an operator.
-- Locks      booking
-- Raises     OD018 UnknownBooking, OD012 WrongState: it is over
create or replace function odc._live_booking(p_name text)
returns booking
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    b booking;
begin
    select * into b from booking where name = p_name and state in ('PLANNED', 'ACTIVE') for update;
    if not found then
        perform _refuse_no_booking(p_name, '{"operator": true}');
    end if;
    return b;
end;
$$;
