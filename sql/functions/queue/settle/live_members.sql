-- odc.live_members: the members of all running attempts that have not ended.
-- Returns    job, attempt, rank, and whether the executor has reported that the member started
create or replace function odc.live_members(p_term bigint)
returns table (job_id bigint, attempt integer, rank integer, started boolean)
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _hold_term(p_term);
    return query
    select r.job_id, r.attempt, a.rank, a.state = 'running'
      from running as r
      join allocation as a on a.job_id = r.job_id
     where a.state <> 'ended'
     order by r.job_id, a.rank;
end;
$$;
