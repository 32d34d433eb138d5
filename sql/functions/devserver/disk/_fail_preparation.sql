-- odc._fail_preparation: a starting reservation cannot have its disk: the attempt ends, and another may follow.
-- Locks      the caller holds the turn; running
create or replace function odc._fail_preparation(p_job_id bigint, p_attempt integer, p_detail text, p_now timestamptz)
returns void
language sql volatile set search_path = odc, pg_temp as $$
    update running
       set intent = 'member_failed', intent_by = 'odcd', intent_at = p_now, state = 'COMPLETING', exit_cause = 'launch', exit_detail = p_detail
     where job_id = p_job_id and attempt = p_attempt and intent is null and running_at is null;
    select odc._wake();
$$;
