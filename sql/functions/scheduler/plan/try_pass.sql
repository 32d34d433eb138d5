-- odc.try_pass: run a pass over the older part of the queue, and undo it. After passes that failed, the leader finds the
-- job at fault with it; see docs/decisions/0045.
-- Arguments  p_newest  newer jobs are hidden, as if they were held
-- Returns    how the pass failed; null: it succeeded
-- Locks      as plan_pass, and the hidden pending rows; the turn is released when the pass is undone
-- Raises     OD020 LeadershipLost, and errors that are no job's fault
create or replace function odc.try_pass(p_term bigint, p_now timestamptz, p_newest bigint, p_start_limit integer default 2000)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_undone constant text := 'ZZ001';
    v_state  text;
    v_why    text;
begin
    begin
        perform _hold_term(p_term);
        perform _take_turn(p_now);
        update pending as p set held = 'admin' where p.ready and p.job_id > p_newest;
        perform plan_pass(p_term, p_now, p_start_limit);
        raise exception using errcode = v_undone, message = 'the pass is undone';
    exception when others or assert_failure then
        get stacked diagnostics v_state = returned_sqlstate, v_why = message_text;
        if _is_passing_error(v_state) then
            raise;
        end if;
    end;
    return case when v_state <> v_undone then format('%s (%s)', v_why, v_state) end;
end;
$$;
