-- odc.hold_jobs: prevent pending jobs from starting. Users cannot release a hold by an operator.
-- Returns    as cancel_jobs, with outcome held or refused
-- Locks      the turn; pending
create or replace function odc.hold_jobs(p_actor jsonb, p_filters jsonb, p_now timestamptz)
returns text
language sql volatile as $$
    select odc._change_pending(p_actor, p_filters, p_now, 'held');
$$;
