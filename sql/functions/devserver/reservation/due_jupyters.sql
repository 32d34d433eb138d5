-- odc.due_jupyters: the active reservations whose Jupyter Lab must be started or stopped: its state differs from the
-- request, or its container has restarted.
-- Locks      term for share
-- Raises     OD020 LeadershipLost
create or replace function odc.due_jupyters(p_term bigint)
returns table (job_id bigint, attempt integer, wanted boolean)
language plpgsql volatile set search_path = odc, pg_temp as $$
#variable_conflict use_column
begin
    perform _hold_term(p_term);
    return query
        select v.job_id, r.attempt, w.wanted
          from reservation as v
          join running as r on r.job_id = v.job_id and r.state = 'RUNNING' and r.intent is null
         cross join lateral (select coalesce(v.ask -> 'jupyter' = 'true', false) as wanted) as w
          left join box_jupyter as b on b.job_id = v.job_id and b.attempt = r.attempt
         where v.launched_at is not null
           and case when not w.wanted then coalesce(b.running, false)
                    else not coalesce(b.running, false)
                         or exists (select from box_restart as e
                                     where e.job_id = v.job_id and e.attempt = r.attempt and e.rank = 0 and e.ended_at > b.at) end
         order by v.job_id;
end;
$$;
