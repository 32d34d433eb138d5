-- odc._close_tasks: for arrays that wait task by task (aftercorr), close the tasks whose counterparts have not ended
-- with success; open the others, and those without a counterpart.
-- Rows are found by index: see _singleton_verdicts.
-- Arguments  p_job_ids  arrays that wait; other jobs are skipped
-- Locks      pending rows of these arrays
create or replace function odc._close_tasks(p_job_ids bigint[])
returns void
language plpgsql volatile set search_path = odc, pg_temp set enable_seqscan = off as $$
begin
    update pending as p
       set closed_tasks = p.tasks * c.tasks
      from (select d.job_id, coalesce(range_agg(s.tasks), '{}') as tasks
              from unnest(p_job_ids) as w (id)
             cross join lateral (select * from dependency as x where x.job_id = w.id offset 0) as d
             cross join lateral (
                   select t.tasks from pending as t where t.job_id = d.target_id
                    union all
                   select case when j.array_task_id is null then _tasks_of(j.array_tasks)
                               else int4multirange(int4range(j.array_task_id, j.array_task_id + 1)) end
                     from job as j
                    where j.array_job_id = d.target_id and j.state is distinct from 'COMPLETED') as s
             where d.kind = 'aftercorr'
             group by d.job_id) as c
     where p.job_id = c.job_id;
end;
$$;
