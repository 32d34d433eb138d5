-- odc.take_signals: for daemons of older releases, which send the signal once: running jobs whose signal before the time
-- limit is due; marks them as signalled.
-- For executors that do not track time limits themselves.
-- Raises     OD020 LeadershipLost
create or replace function odc.take_signals(p_term bigint, p_now timestamptz)
returns table (job_id bigint, attempt integer, signal integer, batch_only boolean)
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _hold_term(p_term);
    return query
    with due as (
        update running as r set signalled = true
          from job as j
         where j.id = r.job_id and r.intent is null and not r.signalled and r.state = 'RUNNING' and r.ends_at < 'infinity'
           and j.signal_number is not null and r.ends_at - make_interval(secs => j.signal_before_s) <= p_now
        returning r.job_id, r.attempt, j.signal_number, j.signal_batch
    )
    select * from due as t order by t.job_id;
end;
$$;
