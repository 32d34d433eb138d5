-- odc.sweep: apply what the passing of time alone causes: begin times, delays, deadlines, exceeded time limits, nodes
-- down for too long, bookings; also repairs of the books, and housekeeping.
-- One sweep changes a limited number of pending jobs, because others wait for the turn: it returns a time that has
-- passed if more are due. After a sweep that failed, odc.sweep_apart finds the step or the job at fault.
-- Arguments  p_keeps_time  the executor ends jobs at their limits; the sweep ends only those it left running
--            p_node_grace  end jobs of a node that has been down this long, unless an operator took it down; null: never
--            p_quarantine  true: quarantine nodes on which jobs keep failing; false: end all quarantines; null: do
--                          neither now
--            p_canaries    quarantined nodes can be tested by canaries
--            p_stale_after  cancel reservations that have waited this long; null: none
--            p_most         maximum number of pending jobs that begin, and that end at their deadline
--            p_aside        jobs that could not be swept: leave them out
--            p_skipped      steps that failed: leave them out
-- Returns    when it should run next: the next begin time, delay, deadline or booking, at most one minute from now
-- Locks      term for share; the turn; server; booking; pending and running rows that are due; node by name, when one is quarantined
-- Raises     OD020 LeadershipLost
create or replace function odc.sweep(
    p_term bigint, p_now timestamptz, p_keeps_time boolean default true, p_node_grace interval default null,
    p_quarantine boolean default null, p_canaries boolean default true, p_stale_after interval default null,
    p_most integer default 5000, p_aside bigint[] default '{}', p_skipped text[] default '{}')
returns timestamptz
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_step    text;
    v_changed boolean := false;
begin
    perform _hold_term(p_term);
    perform _take_turn(p_now);
    foreach v_step in array _sweep_steps() loop
        if v_step <> all (p_skipped) then
            v_changed := _sweep_step(v_step, p_now, p_keeps_time, p_node_grace, p_quarantine, p_canaries, p_stale_after, p_most,
                                     p_aside) or v_changed;
        end if;
    end loop;
    if v_changed then
        perform _wake();
    end if;
    return _next_sweep(p_now, p_keeps_time, p_node_grace, p_aside);
end;
$$;
