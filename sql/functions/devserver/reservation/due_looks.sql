-- odc.due_looks: the active reservations whose QOS warns about idle ones.
-- Locks      term for share
-- Raises     OD020 LeadershipLost
create or replace function odc.due_looks(p_term bigint)
returns table (job_id bigint, attempt integer)
language plpgsql volatile set search_path = odc, pg_temp as $$
#variable_conflict use_column
begin
    perform _hold_term(p_term);
    return query
        select v.job_id, r.attempt
          from reservation as v
          join running as r on r.job_id = v.job_id and r.state = 'RUNNING' and r.intent is null
          join qos as q on q.id = r.qos_id and q.idle_warn_s > 0
         where v.launched_at is not null
         order by v.job_id;
end;
$$;
