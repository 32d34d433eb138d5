-- odc.resolve_jobs: the rows that a selector names: a job, an array with its elements, or elements.
-- Arguments  p_job_id  a job or an array
--            p_tasks   elements of array p_job_id; null: all of it
-- Returns    ids of elements that have started, and of the row of those that have not; none if unknown
create or replace function odc.resolve_jobs(p_job_id bigint, p_tasks int4multirange)
returns table (job_id bigint)
language sql stable as $$
    select j.id
      from odc.job as j
      left join odc.pending as p on p.job_id = j.id
      left join odc.running as r on r.job_id = j.id
     where j.id = p_job_id
       and case when p_tasks is null or j.array_task_id <@ p_tasks then true
                when p.tasks is not null then p.tasks && p_tasks
                else odc._tasks_of(j.array_tasks) && p_tasks end
       -- The row of an array whose tasks have all started is not a job any more.
       and (j.state is not null or p.job_id is not null or r.job_id is not null)
     union all
    select j.id
      from odc.job as j
     where j.array_job_id = p_job_id and j.id <> p_job_id
       and (p_tasks is null or j.array_task_id <@ p_tasks)
$$;
