-- odc._preempt_jobs: end victims for their preemptors, and reserve the freed nodes for those, as decide returned them.
-- An array's row that preempts gives its next task a row of its own, if more than one waits: that one is the preemptor.
-- If a preemptor changed since the plan was made, or one of its victims is ending, it preempts no job: the next pass decides again.
-- Arguments  parallel, as decide returns them: victims, for which job, that job's _job_facts as the plan saw them, cost;
--            protected jobs and their nodes
-- Returns    the preemptors that were skipped
-- Locks      the turn; pending rows of preemptors, running and allocation rows of victims
create or replace function odc._preempt_jobs(
    p_now timestamptz, p_victims bigint[], p_for bigint[], p_facts bigint[], p_costs bigint[],
    p_head_jobs bigint[], p_head_ats timestamptz[], p_head_nodes text[])
returns bigint[]
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_queue_id bigint;
    v_id       bigint;
    v_nodes    text;
    v_at       timestamptz;
    v_next     integer;
    v_more     boolean;
    v_left_out bigint[];
begin
    perform _take_turn(p_now);
    v_left_out := array(
        select distinct v.for_id
          from unnest(p_victims, p_for, p_facts) as v (job_id, for_id, facts)
         where not exists (select from running as r where r.job_id = v.job_id and r.intent is null)
            or not exists (select from pending as p where p.job_id = v.for_id and p.ready and _job_facts(p) = v.facts));
    for v_queue_id, v_nodes, v_at in
        select h.id, h.nodes, h.at from unnest(p_head_jobs, p_head_nodes, p_head_ats) with ordinality as h (id, nodes, at, o)
         where h.id = any (p_for) and h.id <> all (v_left_out) order by h.o
    loop
        v_id := v_queue_id;
        select lower(p.tasks - coalesce(p.closed_tasks, '{}')), _task_count(p.tasks) > 1
          into v_next, v_more
          from pending as p where p.job_id = v_queue_id and p.tasks is not null;
        if v_more then
            v_id := (_split_tasks(v_queue_id, int4multirange(int4range(v_next, v_next + 1)), p_now))[1];
        end if;
        update pending as p
           set claim_nodes = string_to_array(v_nodes, ',')::integer[], claimed_at = p_now,
               claim_ends_at = v_at + _claim_margin()
         where p.job_id = v_id;

        with victim as materialized (
            select v.job_id, p_now + make_interval(secs => q.grace_s) as kill_at,
                   jsonb_strip_nulls(jsonb_build_object(
                       'attempt', r.attempt, 'by', v_id, 'qos', w.name, 'victim_qos', q.name,
                       'mode', case when q.preempt_mode = 'requeue' and j.requeue then 'requeue' else 'cancel' end,
                       'at', _iso(p_now), 'ran_s', floor(extract(epoch from p_now - r.started_at))::bigint,
                       'checkpoint_at', _iso(r.checkpoint_at), 'grace_s', q.grace_s,
                       case when a.gpus > 0 then 'lost_gpu_s' else 'lost_cpu_s' end, v.cost / 1000)) as detail
              from unnest(p_victims, p_for, p_costs) as v (job_id, for_id, cost)
              join running as r on r.job_id = v.job_id
              join job as j on j.id = v.job_id
              join qos as q on q.id = r.qos_id
              join pending as p on p.job_id = v_id
              join qos as w on w.id = p.qos_id
             cross join lateral (select sum(l.gpus) as gpus from allocation as l where l.job_id = v.job_id) as a
             where v.for_id = v_queue_id and r.intent is null
        ), marked as (
            update running as r
               set intent = 'preempt', intent_by = 'odcd', intent_at = p_now, state = 'COMPLETING',
                   preempted_by = v_id, kill_at = v.kill_at, preemption = v.detail
              from victim as v where r.job_id = v.job_id
        ), freed as (
            update allocation as l set ends_at = v.kill_at from victim as v where l.job_id = v.job_id
        ), victims as (
            insert into event (at, kind, actor, job_id, detail)
            select p_now, 'preempting', 'odcd', v.job_id, v.detail
              from victim as v order by v.job_id
        )
        insert into event (at, kind, actor, job_id, detail)
        select p_now, 'preempts', 'odcd', v_id,
               jsonb_build_object('victims', jsonb_agg(v.job_id order by v.job_id),
                                  'nodes', (select jsonb_agg(n.name order by length(n.name), n.name) from node as n
                                             where n.id = any (string_to_array(v_nodes, ',')::integer[])),
                                  'planned_start_at', _iso(v_at),
                                  'lost_gpu_s', coalesce(sum((v.detail ->> 'lost_gpu_s')::bigint), 0),
                                  'lost_cpu_s', coalesce(sum((v.detail ->> 'lost_cpu_s')::bigint), 0))
          from victim as v;
    end loop;
    perform _wake();
    return v_left_out;
end;
$$;
