-- odc._read_booking_zone: the zone in which a booking repeats, from a request.
-- Arguments  p_ask      as _read_booking; zone: a name of the time zone database; "" or null: UTC
--            p_repeats  whether it repeats
-- Returns    null: UTC
-- Raises     OD010 BadRequest: the zone does not exist, or the booking does not repeat
create or replace function odc._read_booking_zone(p_zone text, p_ask jsonb, p_repeats booking_repeat)
returns text
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_zone constant text := nullif(case when p_ask ? 'zone' then p_ask ->> 'zone' else p_zone end, '');
begin
    if v_zone is null or v_zone = 'UTC' then
        return null;
    elsif p_repeats = 'none' and p_ask ->> 'zone' is not null then
        raise exception using errcode = 'OD010',
            message = '"zone" is for bookings that repeat, and this one does not',
            hint = 'Give --repeat too, or leave --zone out.';
    elsif p_repeats = 'none' then
        return null;
    end if;
    perform _check_zones(array[v_zone]);
    return v_zone;
end;
$$;
