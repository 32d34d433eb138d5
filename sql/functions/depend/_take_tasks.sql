-- odc._take_tasks: take the lowest open tasks of arrays out of their ranges; each gets a row of its own in job.
-- The last task of an array takes the range's own row, as in Slurm; its pending row is gone then.
-- Arguments  p_job_ids, p_counts  the arrays' ids, and how many tasks to take of each (at most those open)
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
begin
    perform from pending where job_id = any (p_job_ids) order by job_id for update;
    with taken as (
        select p.job_id, t.task,
               row_number() over (partition by p.job_id order by t.task desc) = 1
               and count(*) over (partition by p.job_id) = _task_count(p.tasks) as last
          from unnest(p_job_ids, p_counts) as a (job_id, n)
          join pending as p on p.job_id = a.job_id
         cross join lateral (
               select s.task
                 from unnest(p.tasks - coalesce(p.closed_tasks, '{}')) as r
                cross join lateral generate_series(lower(r), least(upper(r)::bigint - 1, lower(r)::bigint + a.n - 1)) as s (task)
                order by s.task
                limit a.n) as t
    )
    select array_agg(t.job_id order by t.job_id, t.task),
           array_agg(case when t.last then t.job_id else nextval('job_id_seq') end order by t.job_id, t.task),
           array_agg(t.task::integer order by t.job_id, t.task), array_agg(t.last order by t.job_id, t.task)
      into v_ranges, v_ids, v_tasks, v_last
      from taken as t;

    insert into job (
        id, kind, array_job_id, array_task_id, name, user_name, uid, gid, account_id, qos_id, partition_ids,
        shape_id, nice, submitted_at, begin_at, deadline_at, time_limit_s, dependency, array_throttle, requeue,
        work_dir, stdin, stdout, stderr, open_mode, umask, signal_number, signal_before_s, signal_batch,
        script_digest, environment_digest, args, comment, submit_host, options)
    select t.id, j.kind, j.id, t.task, j.name, j.user_name, j.uid, j.gid, j.account_id, j.qos_id, j.partition_ids,
           j.shape_id, j.nice, j.submitted_at, j.begin_at, j.deadline_at, j.time_limit_s, j.dependency,
           j.array_throttle, j.requeue, j.work_dir, j.stdin, j.stdout, j.stderr, j.open_mode, j.umask,
           j.signal_number, j.signal_before_s, j.signal_batch, j.script_digest, j.environment_digest, j.args,
           j.comment, j.submit_host, j.options
      from unnest(v_ranges, v_ids, v_tasks, v_last) as t (range_id, id, task, last)
      join job as j on j.id = t.range_id
     where not t.last;
    update job as j set array_task_id = t.task
      from unnest(v_ranges, v_tasks, v_last) as t (range_id, task, last)
     where t.last and j.id = t.range_id;
    delete from pending as p
     using unnest(v_ranges, v_last) as t (range_id, last)
     where t.last and p.job_id = t.range_id;
    update pending as p
       set tasks = p.tasks - t.tasks, open_count = greatest(0, p.open_count - t.n)
      from (select u.range_id, range_agg(int4range(u.task, u.task + 1)) as tasks, count(*)::integer as n
              from unnest(v_ranges, v_tasks) as u (range_id, task) group by u.range_id) as t
     where p.job_id = t.range_id;
    return query select * from unnest(v_ranges, v_ids, v_tasks);
end;
$$;
