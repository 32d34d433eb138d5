-- odc.sweep: apply what the passing of time alone causes: begin times, delays, deadlines, exceeded time limits, nodes
-- down for too long, bookings; also repairs of the books, and housekeeping.
-- One sweep changes a limited number of pending jobs, because others wait for the turn: it returns a time that has
-- passed if more are due.
-- Arguments  p_keeps_time  the executor ends jobs at their limits; the sweep ends only those it left running
--            p_node_grace  end jobs of a node that has been down this long, unless an operator took it down; null: never
--            p_quarantine  true: quarantine nodes on which jobs keep failing; false: end all quarantines; null: do
--                          neither now
--            p_canaries    quarantined nodes can be tested by canaries
--            p_stale_after  cancel reservations that have waited this long; null: none
--            p_most         maximum number of pending jobs that begin, and that end at their deadline
-- Returns    when it should run next: the next begin time, delay, deadline or booking, at most one minute from now
-- Locks      term for share; the turn; server; booking; pending and running rows that are due; node by name, when one is quarantined
-- Raises     OD020 LeadershipLost
create or replace function odc.sweep(
    p_term bigint, p_now timestamptz, p_keeps_time boolean default true, p_node_grace interval default null,
    p_quarantine boolean default null, p_canaries boolean default true, p_stale_after interval default null,
    p_most integer default 5000)
returns timestamptz
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    -- The executor ends a job at its limit, and the job may use its grace; a job still there after that is stopped again.
    v_overrun constant interval := '60 seconds';
    v_begun   bigint[];
    v_late    bigint[];
    v_booked  timestamptz;
    v_changed boolean := false; -- reservations ended, or jobs lack other things than before
    v_late_runs boolean;
begin
    perform _hold_term(p_term);
    perform _take_turn(p_now);
    v_booked := _sweep_bookings(p_now);
    with begun as (
        update pending as p
           set begun = true, reason = case when held is not null then reason end,
               eligible_at = case when held is null and dependency = 'met' and lacks is null then coalesce(eligible_at, p_now)
                                  else eligible_at end
         where p.job_id = any (array(
               select b.job_id from pending as b where not b.begun and b.begin_at <= p_now order by b.begin_at limit p_most))
        returning p.array_job_id
    )
    select array_agg(distinct array_job_id) filter (where array_job_id is not null) into v_begun from begun;
    if v_begun is not null then
        perform _refresh_open_counts(v_begun);
    end if;
    perform _end_delays(p_now);

    select array_agg(d.job_id) into v_late
      from (select job_id from pending where deadline_at <= p_now order by deadline_at limit p_most) as d;
    if v_late is not null then
        perform _end_pending(v_late, null, null, 'DEADLINE', 'odcd', p_now);
    end if;
    -- Before time limits are checked, because the time of reservations that are not active yet has not begun.
    if exists (select from reservation) then
        v_changed := _end_late_reservations(p_stale_after, p_now);
        perform _forget_ended_reservations();
        perform _postpone_reservation_ends(p_now);
    end if;
    v_changed := _sweep_disks(p_now) or v_changed;
    update running
       set intent = case when deadline_at <= p_now then 'deadline' else 'timeout' end::end_intent,
           intent_by = 'odcd', intent_at = p_now, state = 'COMPLETING'
     where intent is null and (deadline_at <= p_now or ends_at < p_now - v_overrun or not p_keeps_time and ends_at <= p_now);
    v_late_runs := found;
    if v_begun is not null or v_late is not null or v_late_runs or v_changed or _fail_nodes(p_node_grace, p_now) then
        perform _wake();
    end if;

    if _repair_books(p_now) > 0 then
        perform _wake();
    end if;
    perform _quarantine_nodes(p_quarantine, p_canaries, p_now);
    delete from idempotency where made_at < p_now - interval '48 hours';
    delete from api_key where expires_at < p_now and (kind <> 'key' or until_at is null or until_at < p_now);
    delete from login_signature where expires_at < p_now;
    update server set led_at = p_now;
    delete from pass where id <= (select max(id) - 10000 from pass);
    return least(p_now + interval '60 seconds', v_booked,
                 (select min(begin_at) from pending where not begun),
                 (select min(deadline_at) from pending),
                 (select min(deadline_at) from running where intent is null),
                 case when not p_keeps_time then _next_end() end,
                 (select min(state_at) + p_node_grace from node
                   where state = 'DOWN' and reason_by is null and state_at > p_now - p_node_grace),
                 (select min(due_at) from dependency where state = 'waiting' and due_at > p_now));
end;
$$;
