-- odc._turn_booking: set a booking's state to current, future or over, according to the time, and record the change as
-- an event. The jobs of a booking that is over are held.
-- Locks      booking; pending rows of its jobs. The caller holds the turn
create or replace function odc._turn_booking(p_booking_id integer, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    b        booking;
    v_from   timestamptz;
    v_to     timestamptz;
    v_state  booking_state;
begin
    select * into strict b from booking where id = p_booking_id for update;
    select * into v_from, v_to from _booking_window(b, p_now);
    v_state := case when v_from is null then 'ENDED'
                    when v_from <= p_now then 'ACTIVE'
                    else 'PLANNED' end;
    if v_state = b.state then
        return;
    end if;
    update booking set state = v_state, state_at = p_now where id = b.id;
    insert into event (at, kind, actor, detail)
    values (p_now, case when v_from is null then 'booking_ended' when v_from <= p_now then 'booking_began' else 'booking_paused' end, 'odcd',
            jsonb_strip_nulls(jsonb_build_object(
                'booking_id', b.id, 'name', b.name,
                'until', case when v_state = 'ACTIVE' then _iso(v_to) end,
                'next_at', case when v_state = 'PLANNED' then _iso(v_from) end)));
    if v_state = 'ENDED' then
        perform _hold_booked(b.id, 'odcd', p_now);
    end if;
    perform _wake();
end;
$$;
