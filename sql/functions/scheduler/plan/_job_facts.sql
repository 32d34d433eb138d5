-- odc._job_facts: a hash of the columns of a pending job that a plan uses, except `ready`. If the hash differs from the one
-- that the plan read, the job has changed since.
create or replace function odc._job_facts(p_pending odc.pending)
returns bigint
language sql immutable as $$
    select hash_record_extended(row(p_pending.shape_id, p_pending.time_limit_s, p_pending.uid, p_pending.account_id,
                                    p_pending.qos_id, p_pending.deadline_at), 0);
$$;
