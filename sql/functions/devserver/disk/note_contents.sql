-- odc.note_contents: store the listing of an attempt's disk, for its next snapshot.
-- Arguments  p_contents    null: it could not be listed; the listing of an earlier leader stays
--            p_used_bytes  null: not known
-- Raises     OD020 LeadershipLost
create or replace function odc.note_contents(
    p_term bigint, p_job_id bigint, p_attempt integer, p_contents text, p_used_bytes bigint)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    perform _hold_term(p_term);
    update disk_volume set contents = coalesce(left(p_contents, 262144), contents), used_bytes = coalesce(p_used_bytes, used_bytes)
     where job_id = p_job_id and attempt = p_attempt and state in ('published', 'releasing');
end;
$$;
