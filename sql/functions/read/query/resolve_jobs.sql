-- odc.resolve_jobs: the rows that a selector matches: a job, an array with its tasks, or tasks.
-- Arguments  p_job_id  a job or an array
--            p_tasks   tasks of array p_job_id; null: all of it
-- Returns    ids of tasks that have started, and of the row of those that have not, which the last of
--            them takes when it starts; none if unknown
create or replace function odc.resolve_jobs(p_job_id bigint, p_tasks int4multirange)
returns table (job_id bigint)
language sql stable as $$
    select j.id
      from odc.job as j
      left join odc.pending as p on p.job_id = j.id
     where j.id = p_job_id
       and case when p_tasks is null or j.array_task_id <@ p_tasks then true
                when p.tasks is not null then p.tasks && p_tasks
                else odc._tasks_of(j.array_tasks) && p_tasks end
     union all
    select j.id
      from odc.job as j
     where j.array_job_id = p_job_id and j.id <> p_job_id
       and (p_tasks is null or j.array_task_id <@ p_tasks)
$$;
