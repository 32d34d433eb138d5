-- odc.sweep_apart: a sweep whose steps, and the jobs of a step that fails, succeed or fail each on its own. It takes a
-- subtransaction per step and, in a step that fails, per job, so it runs only after odc.sweep has failed.
-- Errors that are no job's fault, such as a lock or the time that ran out, end it and undo all.
-- Arguments  as odc.sweep
-- Returns    what failed: the step, the job (null: the step as a whole), SQLSTATE and message
-- Locks, Raises  as odc.sweep
create or replace function odc.sweep_apart(
    p_term bigint, p_now timestamptz, p_keeps_time boolean default true, p_node_grace interval default null,
    p_quarantine boolean default null, p_canaries boolean default true, p_stale_after interval default null,
    p_most integer default 250, p_aside bigint[] default '{}', p_skipped text[] default '{}')
returns table (step text, job_id bigint, state text, why text)
language plpgsql volatile set search_path = odc, pg_temp as $$
#variable_conflict use_variable
declare
    v_jobs bigint[];
begin
    perform _hold_term(p_term);
    perform _take_turn(p_now);
    foreach step in array _sweep_steps() loop
        continue when step = any (p_skipped);
        begin
            job_id := null;
            perform _sweep_step(step, p_now, p_keeps_time, p_node_grace, p_quarantine, p_canaries, p_stale_after, p_most, p_aside);
            continue;
        exception when others or assert_failure then
            get stacked diagnostics state = returned_sqlstate, why = message_text;
            if _is_passing_error(state) then
                raise;
            end if;
        end;
        v_jobs := _swept_jobs(step, p_now, p_keeps_time, p_most, p_aside);
        if v_jobs is null then
            return next;
        end if;
        foreach job_id in array coalesce(v_jobs, '{}') loop
            begin
                perform _sweep_step(step, p_now, p_keeps_time, p_node_grace, p_quarantine, p_canaries, p_stale_after, p_most,
                                    p_aside, array[job_id]);
            exception when others or assert_failure then
                get stacked diagnostics state = returned_sqlstate, why = message_text;
                if _is_passing_error(state) then
                    raise;
                end if;
                return next;
            end;
        end loop;
    end loop;
    perform _wake();
end;
$$;
