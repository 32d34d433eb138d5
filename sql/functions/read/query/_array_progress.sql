-- odc._array_progress: the tasks of an array by what became of them. failed: ended in any state but COMPLETED.
-- Returns    JSON {tasks, pending, running, done, failed}; null: not an array
create or replace function odc._array_progress(p_job_id bigint)
returns json
language sql stable as $$
    select json_build_object('tasks', a.task_count,
                             'pending', greatest(0, a.task_count - a.running - a.ended_ok - a.ended_not_ok),
                             'running', a.running, 'done', a.ended_ok, 'failed', a.ended_not_ok)
      from odc.array_job as a
     where a.job_id = p_job_id
$$;
