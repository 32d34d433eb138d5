-- odc._open_tasks: for arrays that wait task by task (aftercorr): open each task whose counterpart ended with success,
-- or that has none; those of a counterpart that failed stay closed.
create or replace function odc._open_tasks(p_job_ids bigint[])
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    with closed as (
        select p.job_id, d.target_id, p.closed_tasks
          from pending as p
          join dependency as d on d.job_id = p.job_id and d.kind = 'aftercorr'
         where p.job_id = any (p_job_ids) and p.closed_tasks <> '{}'
    ), open as (
        -- What is neither ended with success nor outside of the target stays closed.
        select c.job_id, c.closed_tasks * range_agg(s.tasks) as tasks
          from closed as c
         cross join lateral (
               select coalesce((select p.tasks from pending as p where p.job_id = c.target_id), '{}') as tasks
                union all
               select case when j.array_task_id is not null
                           then int4multirange(int4range(j.array_task_id, j.array_task_id + 1))
                           else coalesce(_tasks_of(j.array_tasks), '{}') end
                 from job as j
                where j.array_job_id = c.target_id and j.state is distinct from 'COMPLETED'
                  and (j.array_task_id is not null or j.array_tasks is not null)) as s
         group by c.job_id, c.closed_tasks
    )
    update pending as p set closed_tasks = o.tasks from open as o
     where o.job_id = p.job_id and p.closed_tasks <> o.tasks;
    perform _refresh_open_counts(p_job_ids);
end;
$$;
