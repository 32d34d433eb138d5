-- odc._reservation_status: a job's state as a dev server status that users know.
-- Arguments  p_intent  why a running reservation is to end, see _seen_intent; null: it is not
--            p_seen    a pass has considered the queue since it was submitted
-- Returns    pending, queued, preparing, active, expired, cancelled or failed
create or replace function odc._reservation_status(p_state odc.job_state, p_intent odc.end_intent, p_seen boolean)
returns text
language sql immutable as $$
    select case when p_state = 'PENDING' then case when p_seen then 'queued' else 'pending' end
                when p_intent = 'timeout' or p_state in ('TIMEOUT', 'COMPLETED') then 'expired'
                when p_intent = 'cancel' or p_state = 'CANCELLED' then 'cancelled'
                when p_state = 'CONFIGURING' and p_intent is null then 'preparing'
                when p_state = 'RUNNING' and p_intent is null then 'active'
                when p_intent in ('requeue', 'requeue_hold') then 'queued'
                else 'failed' end
$$;
