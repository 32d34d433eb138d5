-- odc._take_tasks: take the lowest open tasks out of the ranges of arrays; each gets a row of its own in job.
-- The last task of an array takes the range's own row, as in Slurm; its pending row is then gone.
-- Arguments  p_job_ids, p_counts  the arrays, and how many tasks to take from each (at most the open ones)
-- Returns    the range's id, the task's id and its number
-- Locks      pending rows of the ranges
create or replace function odc._take_tasks(p_job_ids bigint[], p_counts integer[], p_now timestamptz)
returns table (job_id bigint, new_id bigint, task integer)
language plpgsql volatile set search_path = odc, pg_temp as $$
#variable_conflict use_column
declare
    v_ranges bigint[];
    v_ids    bigint[];
    v_tasks  integer[];
    v_last   boolean[];
    v_closed bigint[];
begin
    with range as materialized (
        select p.job_id, p.tasks - coalesce(p.closed_tasks, '{}') as open, a.n, a.n >= _task_count(p.tasks) as all_of_it
          from (select * from unnest(p_job_ids, p_counts) as a (job_id, n) order by job_id) as a
          join pending as p on p.job_id = a.job_id and p.job_id = any (p_job_ids)
           for update of p
    ), taken as (
        select r.job_id, t.task, r.all_of_it and t.task = upper(r.open) - 1 as last
          from range as r
         cross join lateral (
               select s.task
                 from unnest(r.open) as o
                cross join lateral generate_series(lower(o), least(upper(o)::bigint - 1, lower(o)::bigint + r.n - 1)) as s (task)
                order by s.task
                limit r.n) as t
    )
    select array_agg(t.job_id), array_agg(case when t.last then t.job_id else nextval('job_id_seq') end),
           array_agg(t.task::integer), array_agg(t.last)
      into v_ranges, v_ids, v_tasks, v_last
      from (select * from taken order by job_id, task) as t;
    if v_ranges is null then
        return;
    end if;

    perform _copy_jobs(array_agg(t.range_id), array_agg(t.id), array_agg(t.task))
       from unnest(v_ranges, v_ids, v_tasks, v_last) as t (range_id, id, task, last)
      where not t.last;
    update job as j set array_task_id = t.task
      from unnest(v_ranges, v_tasks, v_last) as t (range_id, task, last)
     where t.last and j.id = t.range_id and j.id = any (p_job_ids);
    delete from pending as p
     using unnest(v_ranges, v_last) as t (range_id, last)
     where t.last and p.job_id = t.range_id and p.job_id = any (p_job_ids);
    with cut as (
        update pending as p
           set tasks = p.tasks - t.tasks, open_count = greatest(0, p.open_count - t.n)
          from (select u.range_id, range_agg(int4range(u.task, u.task + 1)) as tasks, count(*)::integer as n
                  from unnest(v_ranges, v_tasks) as u (range_id, task) group by u.range_id) as t
         where p.job_id = t.range_id and p.job_id = any (p_job_ids)
        returning p.job_id, p.closed_tasks
    )
    select array_agg(c.job_id) filter (where c.closed_tasks <> '{}') into v_closed from cut as c;
    perform _judge_dependencies(v_closed, p_now);
    return query select * from unnest(v_ranges, v_ids, v_tasks);
end;
$$;
