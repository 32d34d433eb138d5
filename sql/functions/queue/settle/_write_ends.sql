-- odc._write_ends: the part of _end_attempts that writes. All writes are one statement, because it may run for thousands of
-- jobs and each part needs the rows of the parts before.
-- Arguments  p_job_ids  running jobs whose members have all ended
-- Returns    the jobs that ended, and those that returned to the queue, in order; null: none
-- Locks      the caller holds the turn; pending, running, job, node_free, allocation, running_use, gpu_now, gpu_use rows of
--            these jobs
-- PostgreSQL may have counted these tables when they were empty. The settings, `any (…)` and `offset 0` leave no plan that
-- compares each end with all others.
create or replace function odc._write_ends(p_job_ids bigint[], p_now timestamptz, out ended bigint[], out requeued bigint[])
language plpgsql volatile set search_path = odc, pg_temp set enable_seqscan = off set enable_nestloop = off as $$
#variable_conflict use_column
declare
    v_most  constant integer := 5; -- failed launches, and requeues for loss, until the job is held
    v_nodes constant integer[] := (select array_agg(distinct a.node_id) from allocation as a where a.job_id = any (p_job_ids));
begin
    with verdict as materialized (
        select * from _attempt_verdicts(p_job_ids)
    ), gone as (
        delete from running as r where r.job_id = any (p_job_ids) returning r.*
    ), freed as (
        delete from allocation as a where a.job_id = any (p_job_ids)
        returning a.job_id, a.rank, a.node_id, a.gpu_mask, a.gpus, a.cpus, a.mem_mib, a.strike, a.used
    ), give as (
        update node_free as f
           set gpu_mask = f.gpu_mask + t.gpu_mask, gpus = f.gpus + t.gpus, cpus = f.cpus + t.cpus,
               mem_mib = f.mem_mib + t.mem_mib, jobs = f.jobs - t.jobs, ended = f.ended + t.jobs
          from (select node_id, sum(gpu_mask)::bigint as gpu_mask, sum(gpus) as gpus, sum(cpus) as cpus,
                       sum(mem_mib) as mem_mib, count(*) as jobs
                  from freed group by node_id) as t
         where f.node_id = t.node_id and f.node_id = any (v_nodes)
        returning f.node_id, f.ended
    ), use as (
        update running_use as u
           set jobs = u.jobs - t.jobs, started_ms = u.started_ms - t.started_ms
          from (select g.account_id, g.uid, g.qos_id, g.partition_id, g.shape_id, g.node_count, f.gpus, f.cpus,
                       count(*) as jobs, sum(_epoch_ms(g.started_at)) as started_ms
                  from gone as g
                  join (select job_id, sum(gpus) as gpus, sum(cpus) as cpus from freed group by job_id) as f on f.job_id = g.job_id
                 group by g.account_id, g.uid, g.qos_id, g.partition_id, g.shape_id, g.node_count, f.gpus, f.cpus) as t
         where (u.account_id, u.uid, u.qos_id, u.partition_id, u.shape_id, u.nodes, u.gpus, u.cpus)
             = (t.account_id, t.uid, t.qos_id, t.partition_id, t.shape_id, t.node_count, t.gpus, t.cpus)
           and u.account_id = any (array(select account_id from gone)) and u.uid = any (array(select uid from gone))
    ), struck as (
        insert into node_strike as s (node_id, uid, script_digest, cause, at, job_id, nths)
        select f.node_id, j.uid, j.script_digest, f.strike, p_now, max(f.job_id), (array_agg(g.ended))[:20]
          from freed as f
          join give as g on g.node_id = f.node_id
          join job as j on j.id = f.job_id and j.id = any (p_job_ids)
         where f.strike is not null
         group by f.node_id, j.uid, j.script_digest, f.strike
            on conflict (node_id, uid, script_digest, cause) do update
           set at = excluded.at, job_id = excluded.job_id, nths = (excluded.nths || s.nths)[:20]
    ), done as materialized (
        select g.*, v.state as end_state, v.reason as end_reason, v.again, n.names, n.gpus, n.real_gpus, n.cpus, n.used,
               case when g.exit_signal is null then g.exit_code else 0 end as code,
               -- When the attempt ended, not when odc learned of it; never before its start or after p_now.
               greatest(g.started_at, least(p_now, coalesce(g.exited_at, p_now))) as over_at
          from gone as g
          join verdict as v on v.job_id = g.job_id
          join (select f.job_id, array_agg(n.name order by f.rank) as names, sum(f.gpus) as gpus, sum(f.cpus) as cpus,
                       sum(f.gpus) filter (where not n.declared) as real_gpus,
                       case when count(f.used) > 0 then array[sum(f.used[1]), sum(f.used[2]), max(f.used[3]), sum(f.used[4]), sum(f.used[5])]::bigint[] end as used
                  from freed as f join node as n on n.id = f.node_id and n.id = any (v_nodes) group by f.job_id) as n on n.job_id = g.job_id
    ), past as (
        insert into attempt (job_id, attempt, state, started_at, running_at, ended_at, node_names, exit_code,
                             signal, reason, requeued, gpus, cpus, preemption, used)
        select job_id, attempt, end_state, started_at, running_at, over_at, names, code, exit_signal,
               coalesce(exit_detail, end_reason), again, gpus, cpus,
               case when intent = 'preempt' then preemption end, used
          from done
    ), looked as (
        delete from gpu_now as g where g.job_id = any (p_job_ids)
    ), owed as (
        -- Its GPU usage is fetched later, by the leader of that time: see odc.store_gpu_use.
        insert into gpu_use as u (job_id, attempt, gpus, running_at, ended_at, source)
        select d.job_id, d.attempt, d.real_gpus, least(d.running_at, d.over_at), d.over_at, coalesce(m.source, 'nvml')
          from done as d
          join gpu_meter as m
            on m.source is not null or exists (select from gpu_use as b where b.job_id = d.job_id and b.attempt = d.attempt)
         where d.real_gpus > 0 and d.running_at is not null
            on conflict (job_id, attempt) do update set ended_at = excluded.ended_at
    ), final as (
        update job as j
           set state = d.end_state, reason = d.end_reason, partition_id = d.partition_id,
               end_detail = coalesce(case when d.intent = 'preempt' then _preemption_text(d.preemption) end, d.exit_detail),
               attempt = d.attempt, eligible_at = d.eligible_at, started_at = d.started_at, ended_at = d.over_at,
               node_names = d.names, exit_code = d.code, signal = d.exit_signal, ended_by = d.intent_by
          from done as d
         where j.id = d.job_id and not d.again and j.id = any (p_job_ids)
        returning j.id
    ), back as (
        insert into pending (
            job_id, shape_id, uid, account_id, qos_id, nice, queued_at, time_limit_s, attempt, held,
            begin_at, begun, deadline_at, eligible_at, array_job_id, reason, born_at)
        select d.job_id, d.shape_id, d.uid, d.account_id, d.qos_id, d.nice, d.queued_at, d.time_limit_s,
               d.attempt + 1,
               case when d.intent = 'requeue_hold' then 'user'::job_hold when t.too_often then 'admin'::job_hold end,
               case when d.exit_cause = 'launch' then p_now + interval '15 seconds' * (1 << least(1 + t.times, 8))
                    when d.exit_cause = 'unscheduled' then p_now + interval '15 seconds' end,
               d.exit_cause is null or d.exit_cause not in ('launch', 'unscheduled'), d.deadline_at,
               case when t.too_often or d.exit_cause in ('launch', 'unscheduled') then null else p_now end, d.array_job_id,
               case when t.too_often then 'JobHoldMaxRequeue' when d.exit_cause = 'launch' then 'JobLaunchFailure' end, p_now
          from done as d
         cross join lateral (select case when d.end_state in ('FAILED', 'NODE_FAIL')
                                         then _count_requeues(d.job_id, d.end_state) else 0 end) as c (times)
         cross join lateral (
               select c.times, c.times + case d.end_state when 'FAILED' then 1 else 0 end >= v_most) as t (times, too_often)
         where d.again
        returning job_id
    ), tell as (
        insert into event (at, kind, actor, job_id, detail)
        select p_now, case when again then 'requeued' else 'ended' end, coalesce(intent_by, 'odcd'), job_id,
               jsonb_strip_nulls(jsonb_build_object(
                   'attempt', attempt, 'state', end_state, 'exit_code', code, 'signal', exit_signal,
                   'reason', end_reason, 'detail', exit_detail,
                   'preemption', case when intent = 'preempt' then preemption end))
          from done
         order by job_id
    )
    select (select array_agg(id order by id) from final), (select array_agg(job_id order by job_id) from back)
      into ended, requeued;
end;
$$;
