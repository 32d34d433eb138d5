-- odc._note_doomed: record that attempts are about to lose a member: its node is lost, or something other than odc ends
-- it. If other members of the gang fail soon after, that is the loss and not the job's own failure: see _record_members.
-- Arguments  as record_facts
-- Locks      the caller has locked the running rows
create or replace function odc._note_doomed(
    p_job_ids bigint[], p_attempts integer[], p_kinds text[], p_ats timestamptz[], p_details text[])
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    with doomed as (
        select distinct on (f.job_id) f.job_id, f.attempt, f.at, f.detail
          from unnest(p_job_ids, p_attempts, p_kinds, p_ats, p_details) as f (job_id, attempt, kind, at, detail)
         where f.kind = 'doomed'
         order by f.job_id, f.attempt desc, f.at desc
    )
    update running as r set doomed_at = d.at, doomed_detail = d.detail
      from doomed as d
     where r.job_id = d.job_id and r.attempt = d.attempt and r.job_id = any (p_job_ids) and r.intent is null;
end;
$$;
