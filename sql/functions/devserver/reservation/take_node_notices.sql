-- odc.take_node_notices: the active reservations whose users have to be notified about their nodes.
-- Returns    a row per reservation: text: the notice; null: the last one no longer holds. until_at: when the first node
--            may be gone; null: not known. Returned until note_node_notice is called
-- Locks      term for share
-- Raises     OD020 LeadershipLost
create or replace function odc.take_node_notices(p_term bigint, p_now timestamptz)
returns table (
    job_id bigint, attempt integer, name text, text text, until_at timestamptz, expires_at timestamptz, shared_home boolean)
language plpgsql volatile set search_path = odc, pg_temp as $$
#variable_conflict use_column
begin
    perform _hold_term(p_term);
    return query
        select v.job_id, r.attempt, j.name, n.text, n.until_at, v.expires_at, coalesce(j.options -> 'pty' = 'true', false)
          from reservation as v
          join running as r on r.job_id = v.job_id and r.state = 'RUNNING' and r.intent is null
          join job as j on j.id = v.job_id
          left join _node_notices(p_now) as n on n.job_id = v.job_id
         where v.launched_at is not null and n.text is distinct from v.node_notice
         order by v.job_id;
end;
$$;
