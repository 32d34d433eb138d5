-- odc.end_steps: record how steps ended, and release what they held. The first report is kept, except that a step that was only
-- closed with its job still gets its own exit code.
-- Arguments  p_ends  [{"job", "attempt", "step", "state", "exit_code", "statuses", "started_at", "ended_at", "detail", "used"}];
--                    the times are seconds since 1970; used: see the column
-- Locks      term for share; step, in the order of its key
-- Raises     OD020 LeadershipLost
create or replace function odc.end_steps(p_term bigint, p_ends jsonb, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _hold_term(p_term);
    perform from step as s
      join jsonb_to_recordset(p_ends) as e (job bigint, attempt integer, step integer)
        on s.job_id = e.job and s.attempt = e.attempt and s.step = e.step
     order by s.job_id, s.attempt, s.step for update of s;
    update step as s
       set state = e.state::job_state, exit_code = e.exit_code, statuses = e.statuses, detail = e.detail, used = e.used,
           started_at = coalesce(to_timestamp(e.started_at), s.started_at),
           ended_at = greatest(s.started_at, least(p_now, coalesce(to_timestamp(e.ended_at), p_now)))
      from jsonb_to_recordset(p_ends) as e (
           job bigint, attempt integer, step integer, state text, exit_code integer, statuses jsonb,
           started_at double precision, ended_at double precision, detail text, used bigint[])
     where s.job_id = e.job and s.attempt = e.attempt and s.step = e.step
       and (s.state = 'RUNNING' or s.exit_code is null);
end;
$$;
