-- odc.unstarted_jobs: running attempts placed before p_before (null: whenever) that have a member that has not started.
-- Attempts that must end are left out: their members may have run already, and their pods may be gone.
create or replace function odc.unstarted_jobs(p_term bigint, p_before timestamptz)
returns table (job_id bigint)
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _hold_term(p_term);
    return query
    select r.job_id from running as r
     where r.intent is null and (p_before is null or r.started_at < p_before)
       and exists (select from allocation as a where a.job_id = r.job_id and a.state = 'starting')
     order by r.job_id;
end;
$$;
