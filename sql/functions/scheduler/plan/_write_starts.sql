-- odc._write_starts: the part of apply_plan that writes. Driven by `delete from pending … returning`, so that a job that
-- changed since is left out.
-- Arguments  p_ids      per start: the id it runs under; null: it is left out
--            p_arrays, p_eligible  the arrays whose tasks start, and since when these may
--            the others as apply_plan
-- Returns    the jobs that start, in order; null: none
-- Locks      pending, running, node_free, allocation and running_use rows of the starts
-- PostgreSQL may have counted these tables when they were empty. The settings and `any (…)` leave no plan that compares each
-- start with all jobs.
create or replace function odc._write_starts(
    p_now timestamptz, p_start_jobs bigint[], p_ids bigint[], p_start_facts bigint[], p_start_partitions integer[],
    p_start_nodes integer[], p_arrays bigint[], p_eligible timestamptz[],
    p_alloc_nodes integer[], p_alloc_masks bigint[], p_alloc_gpus integer[], p_alloc_cpus integer[],
    p_alloc_mems integer[])
returns bigint[]
language plpgsql volatile set search_path = odc, pg_temp set enable_seqscan = off set enable_nestloop = off as $$
declare
    v_started bigint[];
begin
    with start as materialized (
        select s.queue_id, s.id, s.facts, s.partition_id, s.nodes,
               sum(s.nodes) over (order by s.ord) - s.nodes as alloc_before
          from unnest(p_start_jobs, p_ids, p_start_facts, p_start_partitions, p_start_nodes) with ordinality
               as s (queue_id, id, facts, partition_id, nodes, ord)
    ), gone as (
        delete from pending as p
         using start as s
         where p.job_id = s.queue_id and p.job_id = any (p_start_jobs) and p.tasks is null and p.ready
           and _job_facts(p) = s.facts
        returning p.job_id as id, p.shape_id, p.uid, p.account_id, p.qos_id, p.nice, p.queued_at,
                  p.time_limit_s, p.attempt, p.eligible_at, p.deadline_at, p.array_job_id,
                  s.partition_id, s.nodes, s.alloc_before
    ), element as (
        select j.id, j.shape_id, j.uid, j.account_id, j.qos_id, j.nice, j.submitted_at as queued_at,
               j.time_limit_s, 1 as attempt, e.eligible_at, j.deadline_at, j.array_job_id,
               s.partition_id, s.nodes, s.alloc_before
          from start as s
          join unnest(p_arrays, p_eligible) as e (queue_id, eligible_at) on e.queue_id = s.queue_id
         cross join lateral (select j.* from job as j where j.id = s.id offset 0) as j
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
        select s.id, s.attempt, s.ends_at, a.node_id, a.gpu_mask, a.gpus, a.cpus, a.mem_mib, n.name,
               row_number() over (partition by s.id order by s.component, length(n.name), n.name, s.alloc_ord) - 1 as rank
          from (select s.*, s.alloc_before + m as alloc_ord,
                       case when h.components is not null then _component_of(h.components, m) end as component
                  from starting as s
                  left join shape as h on h.id = s.shape_id and h.components is not null
                 cross join lateral generate_series(1, s.nodes) as m) as s
          join unnest(p_alloc_nodes, p_alloc_masks, p_alloc_gpus, p_alloc_cpus, p_alloc_mems) with ordinality
               as a (node_id, gpu_mask, gpus, cpus, mem_mib, ord) on a.ord = s.alloc_ord
          join node as n on n.id = a.node_id and n.id = any (p_alloc_nodes)
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
         where f.node_id = t.node_id and f.node_id = any (p_alloc_nodes)
    ), use as (
        insert into running_use as u (account_id, uid, qos_id, partition_id, shape_id, nodes, gpus, cpus, jobs, started_ms)
        select l.account_id, l.uid, l.qos_id, l.partition_id, l.shape_id, l.nodes, a.gpus, a.cpus, count(*),
               count(*) * _epoch_ms(p_now)
          from starting as l
          join (select id, sum(gpus)::integer as gpus, sum(cpus)::integer as cpus from placed group by id) as a on a.id = l.id
         group by l.account_id, l.uid, l.qos_id, l.partition_id, l.shape_id, l.nodes, a.gpus, a.cpus
         order by l.account_id, l.uid, l.qos_id, l.partition_id, l.shape_id, l.nodes, a.gpus, a.cpus
            on conflict (account_id, uid, qos_id, partition_id, shape_id, nodes, gpus, cpus) do update
           set jobs = u.jobs + excluded.jobs, started_ms = u.started_ms + excluded.started_ms
    ), tell as (
        insert into event (at, kind, actor, job_id, detail)
        select p_now, 'started', 'odcd', p.id,
               jsonb_build_object('attempt', p.attempt, 'nodes', array_agg(p.name order by p.rank))
          from placed as p
         group by p.id, p.attempt
         order by p.id
    )
    select array_agg(id order by id) into v_started from starting;
    return v_started;
end;
$$;
