-- odc.note_jupyter: record the result of starting or stopping a reservation's Jupyter Lab. An ended attempt is ignored.
-- Arguments  p_running  true: it was to start; false: to stop
--            p_error    why that failed; null: it succeeded
-- Locks      term for share; running row for share
-- Raises     OD020 LeadershipLost
create or replace function odc.note_jupyter(
    p_term bigint, p_job_id bigint, p_attempt integer, p_running boolean, p_error text, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _hold_term(p_term);
    perform from running as r where r.job_id = p_job_id and r.attempt = p_attempt for share;
    if not found then
        return;
    end if;
    insert into box_jupyter as b (job_id, attempt, running, at, error)
    values (p_job_id, p_attempt, p_running, p_now, p_error)
        on conflict (job_id) do update set attempt = excluded.attempt, running = excluded.running, at = excluded.at, error = excluded.error;
    insert into event (at, kind, actor, job_id, detail)
    values (p_now, 'jupyter', 'odcd', p_job_id, jsonb_strip_nulls(jsonb_build_object('running', p_running, 'error', p_error)));
    perform _wake();
end;
$$;
