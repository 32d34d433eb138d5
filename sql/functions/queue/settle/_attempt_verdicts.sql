-- odc._attempt_verdicts: how the attempts of running jobs end, and whether the jobs run again. An intent of the database
-- (cancel, preempt, timeout, ...) takes precedence over the reports of the members. An attempt to start a reservation is
-- repeated twice; a reservation that was active never starts again.
-- Returns    per job: the state and Slurm's reason of the attempt; again: it returns to the queue
create or replace function odc._attempt_verdicts(p_job_ids bigint[])
returns table (job_id bigint, state odc.job_state, reason text, again boolean)
language sql stable as $$
    select r.job_id,
           case when r.intent in ('cancel') then 'CANCELLED'
                when r.intent = 'deadline' then 'DEADLINE'
                when r.intent = 'preempt' then 'PREEMPTED'
                when r.intent = 'node_fail' then 'NODE_FAIL'
                when r.intent in ('requeue', 'requeue_hold') then 'CANCELLED'
                when r.intent = 'timeout' then 'TIMEOUT'
                when r.exit_cause = 'lost' or half_launched then 'NODE_FAIL'
                when r.exit_cause = 'timeout' then 'TIMEOUT'
                when r.exit_cause = 'oom' then 'OUT_OF_MEMORY'
                when r.exit_cause is not null then 'FAILED'
                else 'COMPLETED' end::odc.job_state as state,
           case when r.intent in ('requeue', 'requeue_hold') then 'Requeued'
                when r.intent = 'preempt' then 'Preempted'
                when r.intent = 'cancel' or r.intent = 'deadline' then null
                when r.intent = 'timeout' then 'TimeLimit'
                when r.exit_cause = 'lost' or r.intent = 'node_fail' or half_launched then 'NodeFail'
                when r.exit_cause = 'timeout' then 'TimeLimit'
                when r.exit_cause = 'oom' then 'OutOfMemory'
                when r.exit_cause in ('launch', 'start_failed') then 'JobLaunchFailure'
                when r.exit_cause = 'failed' then 'NonZeroExitCode' end as reason,
           once_more and coalesce(r.intent in ('requeue', 'requeue_hold')
                    or (r.intent = 'node_fail' and j.requeue)
                    or (r.intent = 'preempt' and r.preemption ->> 'mode' = 'requeue' and j.requeue)
                    or (r.intent is null or r.intent = 'member_failed')
                       and (((r.exit_cause = 'lost' or half_launched) and j.requeue)
                            or (r.exit_cause = 'launch' and not half_launched)), false) as again
      from odc.running as r
      join odc.job as j on j.id = r.job_id and j.id = any (p_job_ids)
      left join odc.reservation as v on v.job_id = r.job_id and v.job_id = any (p_job_ids)
     cross join lateral (select v.job_id is null or v.launched_at is null and r.attempt < 3 as once_more) as o
     -- One member of a gang could not be launched while another ran: the job has run.
     cross join lateral (select coalesce(r.exit_cause = 'launch' and r.running_at is not null, false)) as h (half_launched)
     where r.job_id = any (p_job_ids)
$$;
