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
    v_near text;
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
    -- PostgreSQL also accepts abbreviations, which have no daylight saving time, and POSIX rules with the opposite sign.
    if v_zone !~ '^[A-Za-z_]+(/[A-Za-z0-9_+-]+)+$' or not exists (select from pg_timezone_names as z where z.name = v_zone) then
        v_near := _near_zone(left(v_zone, 100));
        raise exception using errcode = 'OD010',
            message = format('time zone "%s" does not exist', left(v_zone, 100)),
            hint = coalesce('Did you mean ' || v_near || '? ', '')
                   || 'Use a name of the time zone database, as Europe/Berlin or America/New_York.';
    end if;
    return v_zone;
end;
$$;
