-- odc._count_requeues: how often a job returned to the queue from an attempt that ended in this state: FAILED, a failed
-- launch; NODE_FAIL, a loss; PREEMPTED; CANCELLED, a requeue by a user; BOOT_FAIL, a node that never accepted it.
create or replace function odc._count_requeues(p_job_id bigint, p_state odc.job_state)
returns integer
language sql stable
begin atomic
    select count(*)::integer from odc.attempt as a where a.job_id = p_job_id and a.requeued and a.state = p_state;
end;
