-- odc.moved_ends: running attempts whose time limit changed since the executor last received it. They are returned until
-- note_ends is called: otherwise an executor that was away would end a job that was extended.
-- Returns    ends_at null: the job no longer has a time limit
-- Raises     OD020 LeadershipLost
create or replace function odc.moved_ends(p_term bigint)
returns table (job_id bigint, attempt integer, ends_at timestamptz)
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _hold_term(p_term);
    return query
    select r.job_id, r.attempt, nullif(r.ends_at, 'infinity')
      from running as r
     where r.sent_ends_at is distinct from r.ends_at
     order by r.job_id;
end;
$$;
