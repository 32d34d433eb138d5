-- odc._sweep_step: one step of a sweep; see odc.sweep for the steps and the arguments.
-- Arguments  p_step   bookings, begin, delays, deadline, reservations, disks, limit, nodes, books, quarantine or tidy
--            p_jobs   of the steps of odc._swept_jobs: only these jobs; null: all that are due
--            p_aside  jobs to leave out
-- Returns    whether the daemons must be notified
-- Locks      the caller holds the turn; as odc.sweep
create or replace function odc._sweep_step(
    p_step text, p_now timestamptz, p_keeps_time boolean, p_node_grace interval, p_quarantine boolean, p_canaries boolean,
    p_stale_after interval, p_most integer, p_aside bigint[], p_jobs bigint[] default null)
returns boolean
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_jobs    bigint[] := case when p_jobs is null and p_step <> 'delays'
                               then _swept_jobs(p_step, p_now, p_keeps_time, p_most, p_aside) else p_jobs end;
    v_changed boolean := false;
begin
    case p_step
    when 'bookings' then
        perform _sweep_bookings(p_now);
    when 'begin' then
        return _begin_pending(v_jobs, p_now);
    when 'delays' then
        perform _end_delays(p_now, p_aside, p_jobs);
    when 'deadline' then
        if v_jobs is not null then
            perform _end_pending(v_jobs, null, null, 'DEADLINE', 'odcd', p_now);
        end if;
        return v_jobs is not null;
    when 'reservations' then
        if exists (select from reservation) then
            v_changed := _end_late_reservations(p_stale_after, p_now, p_aside);
            perform _forget_ended_reservations();
            perform _postpone_reservation_ends(p_now);
        end if;
    when 'disks' then
        return _sweep_disks(p_now);
    when 'limit' then
        update running
           set intent = case when deadline_at <= p_now then 'deadline' else 'timeout' end::end_intent,
               intent_by = 'odcd', intent_at = p_now, state = 'COMPLETING'
         where job_id = any (v_jobs);
        return found;
    when 'nodes' then
        return _fail_nodes(p_node_grace, p_now);
    when 'books' then
        return _repair_books(p_now) > 0;
    when 'quarantine' then
        perform _quarantine_nodes(p_quarantine, p_canaries, p_now);
    when 'tidy' then
        delete from idempotency where made_at < p_now - interval '48 hours';
        delete from api_key where expires_at < p_now and (kind <> 'key' or until_at is null or until_at < p_now);
        delete from login_signature where expires_at < p_now;
        update server set led_at = p_now;
        delete from pass where id <= (select max(id) - 10000 from pass);
    end case;
    return v_changed;
end;
$$;
