-- odc.show_attempts: the ended attempts of a job, first one first.
-- Arguments  p_job_id  one job; an array has no attempts of its own
-- Returns    a JSON array of {attempt, state, started_at (when it got its nodes), running_at, ended_at, node_names,
--            exit_code, signal, reason, requeued}
create or replace function odc.show_attempts(p_job_id bigint)
returns text
language plpgsql stable set search_path = odc, pg_temp as $$
begin
    return (select coalesce(json_agg(json_build_object(
                       'attempt', a.attempt, 'state', a.state, 'started_at', _iso(a.started_at),
                       'running_at', _iso(a.running_at), 'ended_at', _iso(a.ended_at), 'node_names', a.node_names,
                       'exit_code', a.exit_code, 'signal', a.signal, 'reason', a.reason, 'requeued', a.requeued)
                   order by a.attempt), '[]')::text
              from attempt as a
             where a.job_id = p_job_id);
end;
$$;
