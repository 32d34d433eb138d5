-- odc.apply_plan: write the starts of a plan. Driven by `delete from pending … returning`: a job that was cancelled, held,
-- changed or started since is left out completely; of an array, only the tasks that may no longer start are left out.
-- Arguments  p_term        the leader's term
--            p_start_*     per start: job (an array's row once per task), _job_facts as the plan saw them, partition,
--                          number of nodes
--            p_alloc_*     their allocations, one after the other: node id, GPU mask, GPUs, CPUs, MiB
-- Returns    ids of the jobs that start; an array's task has an id of its own from here on
-- Locks      term for share; the turn; pending, running, job, node_free, allocation and disk rows of the starts
-- Raises     OD020 LeadershipLost; OD003 PlanStale: a node has less free than the plan needs, or a disk is no longer
--            free; plan_pass makes sure that neither happens
create or replace function odc.apply_plan(
    p_term bigint, p_now timestamptz,
    p_start_jobs bigint[], p_start_facts bigint[], p_start_partitions integer[], p_start_nodes integer[],
    p_alloc_nodes integer[], p_alloc_masks bigint[], p_alloc_gpus integer[], p_alloc_cpus integer[],
    p_alloc_mems integer[])
returns setof bigint
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_arrays   bigint[];
    v_counts   integer[];
    v_eligible timestamptz[];
    v_ids      bigint[];        -- per start: the id it runs under; null: it was left out
    v_started  bigint[];
begin
    perform _hold_term(p_term);
    perform _take_turn(p_now);
    v_ids := p_start_jobs;
    select array_agg(p.job_id order by p.job_id), array_agg(least(s.n, p.open_count) order by p.job_id),
           array_agg(p.eligible_at order by p.job_id)
      into v_arrays, v_counts, v_eligible
      from (select t.job_id, min(t.facts) as facts, count(*)::integer as n
              from unnest(p_start_jobs, p_start_facts) as t (job_id, facts) group by t.job_id) as s
      join pending as p on p.job_id = s.job_id
     where p.tasks is not null and p.ready and _job_facts(p) = s.facts;
    if v_arrays is not null then
        -- The n-th start of an array's row is the n-th task taken from it.
        with taken as (
            select t.job_id, t.new_id, row_number() over (partition by t.job_id order by t.task) as n
              from _take_tasks(v_arrays, v_counts, p_now) as t
        ), starts as (
            select s.job_id, s.ord, row_number() over (partition by s.job_id order by s.ord) as n
              from unnest(p_start_jobs) with ordinality as s (job_id, ord)
        )
        select array_agg(case when s.job_id = any (v_arrays) then t.new_id else s.job_id end order by s.ord)
          into v_ids
          from starts as s
          left join taken as t on t.job_id = s.job_id and t.n = s.n;
    end if;

    with start as materialized (
        select s.job_id as queue_id, i.id, s.facts, s.partition_id, s.ord, s.nodes,
               sum(s.nodes) over (order by s.ord) - s.nodes as alloc_before
          from unnest(p_start_jobs, p_start_facts, p_start_partitions, p_start_nodes) with ordinality
               as s (job_id, facts, partition_id, nodes, ord)
          join unnest(v_ids) with ordinality as i (id, ord) on i.ord = s.ord
    ), gone as (
        delete from pending as p
         using start as s
         where p.job_id = s.queue_id and p.tasks is null and p.ready and _job_facts(p) = s.facts
        returning p.job_id as id, p.shape_id, p.uid, p.account_id, p.qos_id, p.nice, p.queued_at,
                  p.time_limit_s, p.attempt, p.eligible_at, p.deadline_at, p.array_job_id,
                  s.partition_id, s.nodes, s.alloc_before
    ), element as (
        select j.id, j.shape_id, j.uid, j.account_id, j.qos_id, j.nice, j.submitted_at as queued_at,
               j.time_limit_s, 1 as attempt, e.eligible_at, j.deadline_at, j.array_job_id,
               s.partition_id, s.nodes, s.alloc_before
          from start as s
          join unnest(v_arrays, v_eligible) as e (queue_id, eligible_at) on e.queue_id = s.queue_id
          join job as j on j.id = s.id
    ), starting as materialized (
        select l.*, case when l.time_limit_s = 2147483647 then 'infinity'
                         else p_now + make_interval(secs => l.time_limit_s) end as ends_at
          from (select * from gone union all select * from element) as l
    ), run as (
        insert into running (
            job_id, attempt, state, shape_id, partition_id, uid, account_id, qos_id, nice, queued_at, eligible_at,
            deadline_at, array_job_id, started_at, time_limit_s, ends_at, sent_ends_at, node_count, live_members)
        select id, attempt, 'CONFIGURING', shape_id, partition_id, uid, account_id, qos_id, nice, queued_at,
               eligible_at, deadline_at, array_job_id, p_now, time_limit_s, ends_at, ends_at, nodes, nodes
          from starting
    ), placed as materialized (
        select s.id, s.ends_at, a.node_id, a.gpu_mask, a.gpus, a.cpus, a.mem_mib, n.name,
               row_number() over (partition by s.id order by length(n.name), n.name) - 1 as rank
          from (select s.*, s.alloc_before + m as alloc_ord
                  from starting as s cross join lateral generate_series(1, s.nodes) as m) as s
          join unnest(p_alloc_nodes, p_alloc_masks, p_alloc_gpus, p_alloc_cpus, p_alloc_mems) with ordinality
               as a (node_id, gpu_mask, gpus, cpus, mem_mib, ord) on a.ord = s.alloc_ord
          join node as n on n.id = a.node_id
    ), allocate as (
        insert into allocation (job_id, rank, node_id, gpu_mask, gpus, cpus, mem_mib, ends_at)
        select id, rank, node_id, gpu_mask, gpus, cpus, mem_mib, ends_at from placed
    ), take as (
        update node_free as f
           set gpu_mask = f.gpu_mask - t.gpu_mask, gpus = f.gpus - t.gpus, cpus = f.cpus - t.cpus,
               mem_mib = f.mem_mib - t.mem_mib, jobs = f.jobs + t.jobs
          from (select node_id, sum(gpu_mask)::bigint as gpu_mask, sum(gpus) as gpus, sum(cpus) as cpus,
                       sum(mem_mib) as mem_mib, count(*) as jobs
                  from placed group by node_id) as t
         where f.node_id = t.node_id
    ), tell as (
        insert into event (at, kind, actor, job_id, detail)
        select p_now, 'started', 'odcd', s.id,
               jsonb_build_object('attempt', s.attempt, 'nodes', p.names)
          from starting as s
          join (select id, array_agg(name order by rank) as names from placed group by id) as p on p.id = s.id
         order by s.id
    )
    select array_agg(id order by id) into v_started from starting;

    if v_started is not null then
        delete from planned where job_id = any (v_started);
        perform _jobs_started(v_started, p_now);
        perform _hold_disks(v_started, p_now);
    end if;
    return query select unnest(v_started);
exception
    when check_violation then
        raise exception using errcode = 'OD003',
            message = 'a node has less free than the plan needs',
            hint = 'The plan is stale; the next pass makes a new one.';
end;
$$;
