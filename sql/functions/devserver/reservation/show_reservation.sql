-- odc.show_reservation: one dev server with its history, as JSON.
-- Arguments  p_positions  as queue_positions returned them
-- Raises     OD006 UnknownJob
create or replace function odc.show_reservation(p_actor jsonb, p_job_id bigint, p_positions jsonb, p_now timestamptz)
returns text
language plpgsql stable set search_path = odc, pg_temp as $$
begin
    perform _own_reservation(jsonb_build_object('operator', true), p_job_id);
    return _render_reservations(array[p_job_id], p_actor, true, p_positions, p_now)::json ->> 0;
end;
$$;
