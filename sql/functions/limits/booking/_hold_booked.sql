-- odc._hold_booked: hold the pending jobs of bookings that are over or deleted.
-- At most 5,000 at once, because others wait for the turn; a later sweep holds the rest.
-- Arguments  p_booking_id  all jobs of this booking; null: of any booking, those that only the booking keeps from
--                          starting
-- Locks      pending. The caller holds the turn
create or replace function odc._hold_booked(p_booking_id integer, p_actor text, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_arrays bigint[];
begin
    with gone as (
        select p.job_id, b.id, b.name, b.state
          from booking as b
          join shape as s on s.booking_id = b.id
          join pending as p on p.shape_id = s.id
         where b.state in ('ENDED', 'DELETED') and p.held is null
           and (b.id = p_booking_id or p_booking_id is null and p.ready)
         order by p.job_id
         limit 5000
           for update of p
    ), held as (
        update pending as p
           set held = 'user', reason = 'ReservationDeleted', eligible_at = null
          from gone as g
         where p.job_id = g.job_id
        returning p.job_id, p.array_job_id, g.id, g.name, g.state
    ), noted as (
        insert into event (at, kind, actor, job_id, detail)
        select p_now, 'held', p_actor, h.job_id, jsonb_build_object(
                   'reason', 'ReservationDeleted', 'booking_id', h.id, 'booking', h.name)
          from held as h
         order by h.job_id
    )
    select array_agg(distinct h.array_job_id) filter (where h.array_job_id is not null) into v_arrays from held as h;
    if v_arrays is not null then
        perform _refresh_open_counts(v_arrays);
    end if;
end;
$$;
