-- odc.due_signals: members of running jobs that must receive the signal before their time limit and have not acknowledged
-- it. They are returned until note_signals, so a new leader continues where the last one stopped.
-- For executors that do not track time limits themselves.
-- Returns    per attempt: the signal, whether only the batch script gets it, the ranks
-- Raises     OD020 LeadershipLost
create or replace function odc.due_signals(p_term bigint, p_now timestamptz)
returns table (job_id bigint, attempt integer, signal integer, batch_only boolean, ranks integer[])
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _hold_term(p_term);
    return query
    select r.job_id, r.attempt, j.signal_number, j.signal_batch, m.ranks
      from running as r
      join job as j on j.id = r.job_id
     cross join lateral (
           select array_agg(a.rank order by a.rank) as ranks
             from allocation as a
            where a.job_id = r.job_id and a.state = 'running' and a.signalled_at is null
              and (a.rank = 0 or not j.signal_batch)) as m
     where r.intent is null and not r.signalled and r.state = 'RUNNING' and r.ends_at < 'infinity'
       and j.signal_number is not null and r.ends_at - make_interval(secs => j.signal_before_s) <= p_now
       and m.ranks is not null
     order by r.job_id;
end;
$$;
