-- odc.note_ends: record that the executor has received these time limits.
-- Arguments  parallel arrays, as moved_ends returned them; moved_ends returns a limit again if it has changed since
-- Raises     OD020 LeadershipLost
create or replace function odc.note_ends(
    p_term bigint, p_job_ids bigint[], p_attempts integer[], p_ends timestamptz[])
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _hold_term(p_term);
    update running as r set sent_ends_at = u.ends_at
      from unnest(p_job_ids, p_attempts, p_ends) as t (job_id, attempt, ends_at)
     cross join lateral (select coalesce(t.ends_at, 'infinity') as ends_at) as u
     where r.job_id = t.job_id and r.attempt = t.attempt;
end;
$$;
