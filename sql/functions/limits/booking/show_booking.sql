-- odc.show_booking: one booking: the current or future one of that name, else the last one.
-- Arguments  p_actor  {user, uid, operator}
-- Returns    a JSON object as text
-- Raises     OD013 NotOwner, OD018 UnknownBooking
create or replace function odc.show_booking(p_actor jsonb, p_name text, p_now timestamptz)
returns text
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    b booking;
begin
    select * into b from booking where name = p_name order by state in ('PLANNED', 'ACTIVE') desc, id desc limit 1;
    if not found then
        perform _refuse_no_booking(p_name, p_actor);
    elsif not coalesce((p_actor ->> 'operator')::boolean, false)
          and not _owns_booking(b, (p_actor ->> 'uid')::integer, null) then
        raise exception using errcode = 'OD013',
            message = format('user %s does not own booking "%s"', p_actor ->> 'user', p_name),
            hint = 'Its owners and operators may see it.';
    end if;
    return _render_bookings(array[b.id], p_now) -> 0;
end;
$$;
