-- odc.release_jobs: allow held jobs to start again.
-- Returns    as cancel_jobs, with outcome released, not_held or refused
-- Locks      the turn; pending
create or replace function odc.release_jobs(p_actor jsonb, p_filters jsonb, p_now timestamptz)
returns text
language sql volatile as $$
    select odc._change_pending(p_actor, p_filters, p_now, 'released');
$$;
