-- odc._sweep_bookings: begin and end bookings, mend those whose nodes changed, and hold jobs whose booking is over.
-- Returns    when the next booking begins or ends; null: none does
-- Locks      booking by id; pending. The caller holds the turn
create or replace function odc._sweep_bookings(p_now timestamptz)
returns timestamptz
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_id integer;
begin
    if not exists (select from booking) then
        return null;
    end if;
    for v_id in select id from booking where state in ('PLANNED', 'ACTIVE') order by id loop
        perform _turn_booking(v_id, p_now);
        perform _mend_booking(v_id, p_now);
    end loop;
    perform _hold_booked(null, 'odcd', p_now);
    return (select min(case when w.starts_at > p_now then w.starts_at else w.ends_at end)
              from booking as b cross join lateral _booking_window(b, p_now) as w
             where b.state in ('PLANNED', 'ACTIVE'));
end;
$$;
