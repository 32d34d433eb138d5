-- odc._split_tasks: give some waiting tasks of an array rows of their own in job and pending, so that they can be
-- held or changed apart.
-- Returns    ids of the new rows
-- Raises     OD017 TooLarge: more than 10,000 tasks
create or replace function odc._split_tasks(p_array_id bigint, p_tasks int4multirange)
returns setof bigint
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    if _task_count(p_tasks) > 10000 then
        raise exception using errcode = 'OD017',
            message = format('%s tasks of array %s at once', _task_count(p_tasks), p_array_id),
            hint = 'Name at most 10,000 tasks, or the whole array.';
    end if;
    return query
    with task as (
        select s as task, nextval('job_id_seq') as id
          from unnest(p_tasks) as r, generate_series(lower(r), upper(r) - 1) as s
    ), written as (
        insert into job (
            id, kind, array_job_id, array_task_id, name, user_name, uid, gid, account_id, qos_id, partition_ids,
            shape_id, nice, submitted_at, begin_at, deadline_at, time_limit_s, dependency, array_throttle, requeue,
            work_dir, stdin, stdout, stderr, open_mode, umask, signal_number, signal_before_s, signal_batch,
            script_digest, environment_digest, args, comment, submit_host, options)
        select t.id, j.kind, j.id, t.task, j.name, j.user_name, j.uid, j.gid, j.account_id, j.qos_id, j.partition_ids,
               j.shape_id, j.nice, j.submitted_at, j.begin_at, j.deadline_at, j.time_limit_s, j.dependency,
               j.array_throttle, j.requeue, j.work_dir, j.stdin, j.stdout, j.stderr, j.open_mode, j.umask,
               j.signal_number, j.signal_before_s, j.signal_batch, j.script_digest, j.environment_digest, j.args,
               j.comment, j.submit_host, j.options
          from task as t join job as j on j.id = p_array_id
    ), queued as (
        insert into pending (
            job_id, shape_id, uid, account_id, qos_id, nice, queued_at, time_limit_s, held, begin_at, begun,
            deadline_at, dependency, dependency_any, eligible_at, array_job_id)
        select t.id, p.shape_id, p.uid, p.account_id, p.qos_id, p.nice, p.queued_at, p.time_limit_s, p.held,
               p.begin_at, p.begun, p.deadline_at,
               case when p.closed_tasks @> t.task then 'waiting' else p.dependency end, p.dependency_any,
               p.eligible_at, p_array_id
          from task as t join pending as p on p.job_id = p_array_id
    ), awaited as (
        insert into dependency (job_id, ord, kind, target_id, target_task, delay_s, due_at, name_key, state)
        select t.id, d.ord, case when d.kind = 'aftercorr' then 'afterok' else d.kind end, d.target_id,
               case when d.kind = 'aftercorr' then t.task else d.target_task end, d.delay_s, d.due_at, d.name_key, d.state
          from task as t join dependency as d on d.job_id = p_array_id
    )
    select id from task;
    update pending set tasks = tasks - p_tasks, closed_tasks = closed_tasks - p_tasks where job_id = p_array_id;
    perform _refresh_open_counts(array[p_array_id]);
end;
$$;
