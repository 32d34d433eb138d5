-- odc._refresh_open_counts: recount how many tasks of these arrays may start now: not closed, and within the throttle.
-- Tasks with a row of their own (once held, or requeued) come before those of the range.
-- Rows are found by index: see _singleton_verdicts.
-- Locks      the pending rows of these arrays
create or replace function odc._refresh_open_counts(p_array_ids bigint[])
returns void
language plpgsql volatile set search_path = odc, pg_temp set enable_seqscan = off as $$
begin
    with room as (
        select a.job_id as array_job_id, greatest(0, coalesce(a.throttle, 2147483647) - a.running) as tasks
          from unnest(p_array_ids) as i (id)
         cross join lateral (select * from array_job as x where x.job_id = i.id offset 0) as a
    ), waiting as (
        select p.job_id, p.array_job_id, p.tasks, p.closed_tasks, p.open_count, r.tasks as room,
               p.tasks is null and p.held is null and p.begun and p.dependency = 'met' as single
          from room as r
         cross join lateral (select * from pending as x where x.array_job_id = r.array_job_id offset 0) as p
    ), placed as (
        select w.*, count(*) filter (where w.single) over (
                        partition by w.array_job_id order by w.tasks is not null, w.job_id) as before
          from waiting as w
    ), open as materialized (
        select job_id,
               case when tasks is not null
                    then least(coalesce(_task_count(tasks - coalesce(closed_tasks, '{}')), 0),
                               greatest(0, room - before))
                    when single then (before <= room)::integer
                    else 1 end::integer as n
          from placed
    )
    update pending as p set open_count = o.n
      from open as o where p.job_id = o.job_id and p.open_count <> o.n;
end;
$$;
