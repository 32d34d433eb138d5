-- odc._end_pending: end pending jobs without an attempt, and wake the jobs that depend on them.
-- Arguments  p_job_ids          jobs, and arrays with all tasks of their pending range
--            p_ranges, p_tasks  some tasks of these ranges, parallel: they become one ended row
--            p_state            CANCELLED or DEADLINE
-- Locks      the caller holds the turn; pending, job, array_job, dependency
create or replace function odc._end_pending(
    p_job_ids bigint[], p_ranges bigint[], p_tasks int4multirange[], p_state job_state, p_actor text, p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_parts bigint[];
    v_ended bigint[];
begin
    if p_ranges is not null then
        v_parts := array(select nextval('job_id_seq') from unnest(p_ranges));
        perform _copy_jobs(p_ranges, v_parts, array_fill(null::integer, array[cardinality(p_ranges)]));
        update job as j
           set array_task_id = case when _task_count(c.tasks) = 1 then lower(c.tasks) end,
               array_tasks = case when _task_count(c.tasks) > 1 then _task_text(c.tasks, null) end,
               state = p_state, ended_at = p_now, ended_by = p_actor
          from unnest(v_parts, p_tasks) as c (id, tasks)
         where j.id = c.id;
        update pending as p
           set tasks = p.tasks - c.tasks, closed_tasks = p.closed_tasks - c.tasks
          from unnest(p_ranges, p_tasks) as c (job_id, tasks)
         where p.job_id = c.job_id;
    end if;

    with gone as (
        delete from pending as p
         using unnest(p_job_ids) as c (id)
         where p.job_id = c.id
        returning p.job_id, p.tasks, p.eligible_at, p.attempt
    ), whole as (
        update job as j
           set state = p_state, ended_at = p_now, ended_by = p_actor, eligible_at = g.eligible_at,
               array_task_id = case when _task_count(g.tasks) = 1 then lower(g.tasks) else j.array_task_id end,
               array_tasks = case when _task_count(g.tasks) > 1 then _task_text(g.tasks, null) end,
               attempt = nullif(g.attempt - 1, 0)
          from gone as g where j.id = g.job_id
        returning j.id
    ), ended as (
        select id from whole union all select id from unnest(v_parts) as id
    ), noted as (
        insert into event (at, kind, actor, job_id, detail)
        select p_now, 'ended', p_actor, id, jsonb_build_object('state', p_state) from ended order by id
    )
    select array_agg(id order by id) into v_ended from ended;
    if v_ended is not null then
        delete from planned as p using unnest(v_ended) as e (id) where p.job_id = e.id;
        perform _jobs_ended(v_ended, p_now);
        perform _judge_jobs(v_ended, p_now);
        perform _notify_jobs('end', v_ended, p_now);
    end if;
end;
$$;
