-- odc.apply_plan: write the starts of a plan. A job that was cancelled, held, changed or started since is left out
-- completely; of an array, only the tasks that may no longer start are left out.
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
    v_taken_jobs bigint[];      -- per task that starts: its array
    v_taken_ids  bigint[];      -- and its id
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
        select array_agg(t.job_id order by t.job_id, t.task), array_agg(t.new_id order by t.job_id, t.task)
          into v_taken_jobs, v_taken_ids
          from _take_tasks(v_arrays, v_counts, p_now) as t;
        v_ids := _start_ids(p_start_jobs, v_arrays, v_taken_jobs, v_taken_ids);
    end if;

    v_started := _write_starts(p_now, p_start_jobs, v_ids, p_start_facts, p_start_partitions, p_start_nodes, v_arrays,
                               v_eligible, p_alloc_nodes, p_alloc_masks, p_alloc_gpus, p_alloc_cpus, p_alloc_mems);

    if v_started is not null then
        delete from planned where job_id = any (v_started);
        perform _jobs_started(v_started, p_now);
        perform _hold_disks(v_started, p_now);
        perform _notify_jobs('begin', v_started, p_now);
    end if;
    return query select unnest(v_started);
exception
    when check_violation then
        raise exception using errcode = 'OD003',
            message = 'a node has less free than the plan needs',
            hint = 'The plan is stale; the next pass makes a new one.';
end;
$$;
