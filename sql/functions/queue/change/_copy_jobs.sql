-- odc._copy_jobs: create separate rows for tasks of arrays, as copies of their array's row.
-- Arguments  parallel: the array's id, the new row's id, the task's number (null: the row will have array_tasks
--            instead)
create or replace function odc._copy_jobs(p_array_ids bigint[], p_ids bigint[], p_tasks integer[])
returns void
language sql volatile as $$
    insert into odc.job (
        id, kind, array_job_id, array_task_id, name, user_name, uid, gid, account_id, qos_id, partition_ids,
        shape_id, nice, submitted_at, begin_at, deadline_at, time_limit_s, dependency, array_throttle, requeue,
        work_dir, stdin, stdout, stderr, open_mode, umask, signal_number, signal_before_s, signal_batch,
        script_digest, environment_digest, args, comment, submit_host, options)
    select t.id, j.kind, j.id, t.task, j.name, j.user_name, j.uid, j.gid, j.account_id, j.qos_id, j.partition_ids,
           j.shape_id, j.nice, j.submitted_at, j.begin_at, j.deadline_at, j.time_limit_s, j.dependency,
           j.array_throttle, j.requeue, j.work_dir, j.stdin, j.stdout, j.stderr, j.open_mode, j.umask,
           j.signal_number, j.signal_before_s, j.signal_batch, j.script_digest, j.environment_digest, j.args,
           j.comment, j.submit_host, j.options
      from unnest(p_array_ids, p_ids, p_tasks) as t (array_id, id, task)
      join odc.job as j on j.id = t.array_id;
$$;
