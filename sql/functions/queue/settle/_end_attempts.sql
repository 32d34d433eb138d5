-- odc._end_attempts: close attempts whose members have all ended. Each job ends or returns to the queue.
-- Arguments  p_job_ids  running jobs, locked by the caller
-- Locks      usage; step; as _write_ends
create or replace function odc._end_attempts(p_job_ids bigint[], p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_ended    bigint[];
    v_requeued bigint[];
begin
    perform _charge_usage(p_job_ids, p_now);
    perform _release_disks(p_job_ids, p_now);
    perform _close_steps(p_job_ids, p_now);
    -- A victim that exited before its stop was sent ended by itself.
    update running as r set intent = null, intent_by = null, preemption = null
     where r.job_id = any (p_job_ids) and r.intent = 'preempt'
       and (r.stop_sent_at is null or r.exited_at < r.stop_sent_at);
    select e.ended, e.requeued into v_ended, v_requeued from _write_ends(p_job_ids, p_now) as e;

    if v_ended is not null then
        perform _jobs_ended(v_ended, p_now, p_ran => true);
        perform _learn_run_times(v_ended, p_now);
        perform _notify_jobs('end', v_ended, p_now);
    end if;
    if v_requeued is not null then
        perform _jobs_requeued(v_requeued, p_now);
        perform _judge_jobs(v_requeued, p_now);
        perform _notify_jobs('requeue', v_requeued, p_now);
    end if;
    perform _wake();
end;
$$;
