-- odc._fail_build_waiters: end the reservations that wait for an image that could not be built.
-- Locks      the caller holds the turn; pending, job
create or replace function odc._fail_build_waiters(p_build_id bigint, p_error text, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_jobs constant bigint[] := array(select _build_waiters(p_build_id));
begin
    perform _end_pending(v_jobs, null, null, 'FAILED', 'odcd', p_now);
    update job as j set reason = 'ImageBuild', end_detail = 'its image could not be built: ' || p_error where j.id = any (v_jobs);
end;
$$;
