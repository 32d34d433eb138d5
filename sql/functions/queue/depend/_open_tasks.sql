-- odc._open_tasks: tasks have ended; open their counterparts in arrays that wait task by task (aftercorr).
-- Arguments  p_ended_ids    rows that have ended
--            p_waiting_ids  arrays that wait for an array of these tasks; other jobs are skipped
-- Locks      the caller holds the turn; pending rows of the arrays that wait
create or replace function odc._open_tasks(p_ended_ids bigint[], p_waiting_ids bigint[])
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_several bigint[];
    v_arrays  bigint[];
begin
    with term as (
        select d.job_id, d.target_id, count(*) over (partition by d.job_id) > 1 as several
          from dependency as d
         where d.job_id = any (p_waiting_ids) and d.kind = 'aftercorr'
    ), opened as (
        select t.job_id, range_agg(int4range(j.array_task_id, j.array_task_id + 1)) as tasks
          from unnest(p_ended_ids) as e (id)
          join job as j on j.id = e.id and j.state = 'COMPLETED'
          join term as t on t.target_id = j.array_job_id and not t.several
         group by t.job_id
    ), written as (
        update pending as p set closed_tasks = p.closed_tasks - o.tasks
          from opened as o
         where p.job_id = o.job_id and p.closed_tasks && o.tasks
    )
    select array_agg(distinct job_id) filter (where several), array_agg(distinct job_id) into v_several, v_arrays from term;
    perform _close_tasks(v_several);
    if v_arrays is not null then
        perform _refresh_open_counts(v_arrays);
    end if;
end;
$$;
