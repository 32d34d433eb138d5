-- odc._split_tasks: give some pending tasks of an array separate rows in job and pending, so that they can be held or
-- changed separately. Not for all pending tasks: the range itself is changed then.
-- Returns    ids of the new rows
-- Raises     OD017 TooLarge: see _check_pieces
create or replace function odc._split_tasks(
    p_array_id bigint, p_tasks int4multirange, p_now timestamptz)
returns bigint[]
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_tasks integer[];
    v_ids   bigint[];
begin
    perform _check_pieces(p_array_id, p_tasks, true);
    select array_agg(t.task order by t.task), array_agg(nextval('job_id_seq')) into v_tasks, v_ids
      from unnest(p_tasks) as r cross join generate_series(lower(r), upper(r) - 1) as t (task);
    perform _copy_jobs(array_fill(p_array_id, array[cardinality(v_ids)]), v_ids, v_tasks);
    insert into pending (
        job_id, shape_id, uid, account_id, qos_id, nice, queued_at, time_limit_s, held, begin_at, begun,
        deadline_at, dependency, dependency_any, eligible_at, array_job_id, born_at)
    select t.id, p.shape_id, p.uid, p.account_id, p.qos_id, p.nice, p.queued_at, p.time_limit_s, p.held,
           p.begin_at, p.begun, p.deadline_at,
           case when p.closed_tasks @> t.task then 'waiting' else p.dependency end, p.dependency_any,
           p.eligible_at, p_array_id, p_now
      from unnest(v_ids, v_tasks) as t (id, task) join pending as p on p.job_id = p_array_id;
    insert into dependency (job_id, ord, kind, target_id, target_task, delay_s, due_at, name_key, state)
    select t.id, d.ord, case when d.kind = 'aftercorr' then 'afterok' else d.kind end, d.target_id,
           case when d.kind = 'aftercorr' then t.task else d.target_task end, d.delay_s, d.due_at, d.name_key,
           -- aftercorr works task by task: an open task has nothing left to wait for.
           case when d.kind <> 'aftercorr' then d.state
                when p.closed_tasks @> t.task then 'waiting' else 'met' end
      from unnest(v_ids, v_tasks) as t (id, task)
      join dependency as d on d.job_id = p_array_id
      join pending as p on p.job_id = p_array_id;
    perform _judge_dependencies(v_ids, p_now);
    update pending set tasks = tasks - p_tasks, closed_tasks = closed_tasks - p_tasks where job_id = p_array_id;
    perform _refresh_open_counts(array[p_array_id]);
    return v_ids;
end;
$$;
