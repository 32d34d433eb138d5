-- odc._has_task: whether this array has (or had) that task.
create or replace function odc._has_task(p_array_id bigint, p_task integer)
returns boolean
language sql stable as $$
    select exists (select from odc.job where array_job_id = p_array_id and array_task_id = p_task)
        or exists (select from odc.pending where job_id = p_array_id and tasks @> p_task)
        or exists (select from odc.job
                    where array_job_id = p_array_id and array_tasks is not null
                      and odc._tasks_of(array_tasks) @> p_task);
$$;
