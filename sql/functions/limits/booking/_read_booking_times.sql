-- odc._read_booking_times: the times of a booking, from a request. A change of only the end moves the end of the
-- current or next occurrence, and thereby changes the length of all.
-- Arguments  as _read_booking
-- Raises     OD010 BadRequest
create or replace function odc._read_booking_times(p_booking booking, p_ask jsonb, p_now timestamptz)
returns booking
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_most     constant integer := 3660 * 86400;
    b          booking := p_booking;
    v_ends_at  constant timestamptz := date_trunc('second', (p_ask ->> 'ends_at')::timestamptz);
    v_zone     text;
    v_duration numeric := coalesce((p_ask ->> 'duration_s')::numeric, b.duration_s);
begin
    b.repeats := coalesce(p_ask ->> 'repeats', b.repeats::text, 'none');
    b.zone := _read_booking_zone(b.zone, p_ask, b.repeats);
    v_zone := coalesce(b.zone, 'UTC');
    if p_ask ->> 'starts_at' is not null then
        b.starts_at := date_trunc('second', (p_ask ->> 'starts_at')::timestamptz);
        if b.starts_at < date_trunc('second', p_now) and b.starts_at is distinct from p_booking.starts_at then
            raise exception using errcode = 'OD010',
                message = format('the booking begins at %s, which is in the past', _iso(b.starts_at)),
                hint = format('It is %s now; choose that time or a later one.', _iso(p_now));
        end if;
    elsif (b.repeats, b.zone) is distinct from (p_booking.repeats, p_booking.zone) and b.id is not null then
        b.starts_at := (_booking_window(p_booking, p_now)).starts_at;
    end if;
    if b.starts_at is null then
        raise exception using errcode = 'OD010',
            message = 'the booking has no start time', hint = 'Give one, as --start now+2h does; in the API it is starts_at.';
    end if;
    -- Repeated on weekdays, it begins on the first weekday.
    if b.repeats = 'weekdays' and extract(isodow from b.starts_at at time zone v_zone) > 5 then
        b.starts_at := ((b.starts_at at time zone v_zone)
                        + make_interval(days => (8 - extract(isodow from b.starts_at at time zone v_zone))::integer))
                       at time zone v_zone;
    end if;

    if v_ends_at is not null and p_ask ->> 'duration_s' is not null then
        raise exception using errcode = 'OD010',
            message = 'the booking has both an end and a duration', hint = 'Give only one of them.';
    elsif v_ends_at is not null then
        v_duration := extract(epoch from v_ends_at - case
            when b.id is null or p_ask ->> 'starts_at' is not null then b.starts_at
            else coalesce((_booking_window(p_booking, p_now)).starts_at, b.starts_at) end);
    end if;
    if v_duration is null then
        raise exception using errcode = 'OD010',
            message = 'the booking has no end', hint = 'Give one: --duration 2:00:00, or --end.';
    elsif v_duration < 1 then
        raise exception using errcode = 'OD010',
            message = case when v_ends_at is null then format('a booking cannot last %s s', v_duration)
                           else format('the booking ends at %s, which is not after its start at %s',
                                       _iso(v_ends_at), _iso(v_ends_at - make_interval(secs => v_duration::double precision))) end,
            hint = 'It must end at least a second after its start.';
    elsif v_duration > v_most or b.starts_at > p_now + make_interval(secs => v_most) then
        raise exception using errcode = 'OD010',
            message = format('the booking from %s for %s days reaches more than ten years ahead',
                             _iso(b.starts_at), trunc(v_duration / 86400)),
            hint = 'Choose an earlier end.';
    elsif v_duration > (case b.repeats when 'none' then v_most when 'weekly' then 604800 else 86400 end
                        - case when b.zone is null then 0 else 3600 end) then
        raise exception using errcode = 'OD010',
            message = format('a booking of %s that repeats %s overlaps itself', _duration(v_duration::integer), b.repeats),
            hint = format('Make it last at most %s, or repeat less often.',
                          case when b.zone is not null and b.repeats = 'weekly' then '6 days and 23 hours'
                               when b.zone is not null then '23 hours, as the shortest day has in its time zone'
                               when b.repeats = 'weekly' then '7 days' else '24 hours' end);
    end if;
    b.duration_s := v_duration;

    if p_ask ? 'until' then
        b.repeats_until := date_trunc('second', (p_ask ->> 'until')::timestamptz);
    end if;
    if b.repeats = 'none' and p_ask ->> 'until' is null then
        b.repeats_until := null;
    elsif b.repeats = 'none' then
        raise exception using errcode = 'OD010',
            message = '"until" is for bookings that repeat, and this one does not', hint = 'Give --repeat too, or leave --until out.';
    elsif b.repeats_until < b.starts_at then
        raise exception using errcode = 'OD010',
            message = format('the booking begins at %s but repeats until %s, which is earlier',
                             _iso(b.starts_at), _iso(b.repeats_until)),
            hint = 'Choose a later --until; without --until it repeats forever.';
    end if;
    if (_booking_window(b, p_now)).starts_at is null then
        raise exception using errcode = 'OD010',
            message = 'the booking would already be over', hint = 'Choose a later end, or delete the booking.';
    end if;
    return b;
end;
$$;
