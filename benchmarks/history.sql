-- Years of history: ended jobs with all their rows in odc. Repeatable, in the schema bench, for benchmarks only.
create schema if not exists bench;

-- Write p_count ended jobs from p_first on, a million per day, by 200 users. Each has three events, three past rows of
-- running, and one row each of attempt, GPU usage and the other past tables; every second one has a prediction. The caller
-- creates the partitions and sets the sequences.
create or replace function bench.make_history(p_first bigint, p_count bigint, p_begin timestamptz, p_shape integer)
returns void language plpgsql as $$
begin
    insert into odc.job_text (digest, content)
    select encode(sha256(('script' || n)::bytea), 'hex'), repeat('python train.py --lr ' || n || E'\n', 20)
      from generate_series(0, 4999) as n on conflict do nothing;
    create temp table made on commit drop as
    select i as id, 'user' || i * 7919 % 200 as user_name, 2000 + (i * 7919 % 200)::integer as uid,
           'train-' || i * 31 % 40 as name, 1 << (i % 4)::integer as gpus, 'n' || lpad((i * 13 % 1000)::text, 4, '0') as node,
           (i * 13 % 1000)::integer as node_id,
           p_begin + i * interval '86.4 milliseconds' as submitted_at,
           p_begin + i * interval '86.4 milliseconds' + interval '1 minute' * (i * 17 % 90) as started_at,
           p_begin + i * interval '86.4 milliseconds' + interval '1 minute' * (i * 17 % 90 + 5 + i * 23 % 600) as ended_at,
           case when i % 11 = 0 then 'FAILED' when i % 37 = 0 then 'TIMEOUT' when i % 53 = 0 then 'CANCELLED'
                else 'COMPLETED' end::odc.job_state as state
      from generate_series(p_first, p_first + p_count - 1) as i;
    insert into odc.job (
        id, name, user_name, uid, gid, account_id, qos_id, partition_ids, shape_id, submitted_at, time_limit_s, requeue,
        work_dir, stdout, umask, script_digest, environment_digest, options, state, reason, partition_id, attempt,
        eligible_at, started_at, ended_at, node_names, exit_code)
    select id, name, user_name, uid, 100, 1, 1, '{1}', p_shape, submitted_at, 86400, true, '/home/' || user_name || '/work',
           'slurm-%j.out', 18, encode(sha256(('script' || id % 5000)::bytea), 'hex'),
           encode(sha256(('script' || uid)::bytea), 'hex'),
           jsonb_build_object('gpus_spec', jsonb_build_object('gpus', gpus::text)), state,
           case when state = 'FAILED' then 'NonZeroExitCode' end, 1, 1, submitted_at, started_at, ended_at, array[node],
           case when state = 'FAILED' then 1 else 0 end
      from made;
    insert into odc.attempt (job_id, attempt, state, started_at, running_at, ended_at, node_names, exit_code, requeued, gpus, cpus)
    select id, 1, state, started_at, started_at, ended_at, array[node], 0, false, gpus, gpus * 8 from made;
    insert into odc.event (at, kind, actor, job_id, detail)
    select e.at, e.kind, e.actor, m.id, e.detail
      from made as m
     cross join lateral (values
         (m.submitted_at, 'submitted', m.user_name, '{}'::jsonb),
         (m.started_at, 'started', 'odcd', jsonb_build_object('attempt', 1, 'nodes', array[m.node])),
         (m.ended_at, 'ended', 'odcd', jsonb_build_object('attempt', 1, 'state', m.state, 'exit_code', 0)))
         as e (at, kind, actor, detail);
    insert into odc.prediction (job_id, attempt, cause, at, plan_s, p10, p50, p90, exact, open, started_at)
    select id, 1, 'submit', submitted_at, 600, submitted_at, started_at, started_at, false, false, started_at
      from made where id % 2 = 0;
    insert into odc.gpu_use (job_id, attempt, gpus, running_at, ended_at, covered_s, busy_gpu_s, mem_peak_mib, source, stored_at)
    select id, 1, gpus, started_at, ended_at, 1000, 800, 40000, 'nvml', ended_at from made;
    insert into odc.running_past (
        past_at, job_id, attempt, state, shape_id, partition_id, uid, account_id, qos_id, nice, queued_at, eligible_at,
        started_at, running_at, time_limit_s, ends_at, node_count, live_members, born_xid)
    select p.at, id, 1, p.state::odc.job_state, p_shape, 1, uid, 1, 1, 0, submitted_at, submitted_at, started_at,
           case p.state when 'RUNNING' then started_at end, 86400, started_at + interval '1 day', 1, p.live, '3'
      from made
     cross join lateral (values (started_at, 'CONFIGURING', 1), (ended_at, 'RUNNING', 1), (ended_at, 'RUNNING', 0))
         as p (at, state, live);
    insert into odc.pending_past (
        past_at, job_id, shape_id, uid, account_id, qos_id, nice, queued_at, time_limit_s, attempt, begun, dependency,
        dependency_any, eligible_at, open_count, ready, born_at, born_xid)
    select started_at, id, p_shape, uid, 1, 1, 0, submitted_at, 86400, 1, true, 'met', false, submitted_at, 1, true,
           submitted_at, '3' from made;
    insert into odc.allocation_past (past_at, job_id, rank, node_id, gpu_mask, gpus, cpus, mem_mib, ends_at)
    select ended_at, id, 0, node_id, 255, gpus, gpus * 8, 64000, started_at + interval '1 day' from made;
    drop table made;
end $$;
