-- odc._jobs_ended: jobs have ended, and job has their state. Counts the tasks of their arrays and judges the jobs that
-- depend on them.
-- Arguments  p_job_ids  ids of jobs, of tasks, and of rows of tasks cancelled together
--            p_ran      they were running until now; false: they were pending
-- Locks      the caller holds the turn; array_job; as _refresh_open_counts and _judge_dependencies
create or replace function odc._jobs_ended(p_job_ids bigint[], p_now timestamptz, p_ran boolean default false)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_arrays  bigint[];
    v_ok      bigint[];
    v_not_ok  bigint[];
    v_counts  integer[];
    v_throttled bigint[];
    v_waiting bigint[];
begin
    select array_agg(n.array_job_id), array_agg(n.ok), array_agg(n.not_ok), array_agg(n.n) into v_arrays, v_ok, v_not_ok, v_counts
      from (select j.array_job_id, case when p_ran then count(*) else 0 end as n,
                   count(*) filter (where j.state = 'COMPLETED') as ok,
                   sum(case when j.state = 'COMPLETED' then 0
                            when j.array_tasks is null then 1
                            else _task_count(_tasks_of(j.array_tasks)) end) as not_ok
              from unnest(p_job_ids) as e (id) join job as j on j.id = e.id
             where j.array_job_id is not null
             group by j.array_job_id) as n;
    if v_arrays is not null then
        update array_job as a
           set ended_ok = a.ended_ok + n.ok, ended_not_ok = a.ended_not_ok + n.not_ok, running = a.running - n.n
          from unnest(v_arrays, v_ok, v_not_ok, v_counts) as n (id, ok, not_ok, n)
         where a.job_id = n.id and a.job_id = any (v_arrays);
        -- Without a throttle, an end of a running task changes no other task.
        if p_ran then
            v_throttled := array(select a.job_id from array_job as a where a.job_id = any (v_arrays) and a.throttle is not null);
        end if;
        if not p_ran or v_throttled <> '{}' then
            perform _refresh_open_counts(case when p_ran then v_throttled else v_arrays end);
        end if;
    end if;
    if not exists (select from dependency) then
        return;
    end if;
    delete from dependency as d where d.job_id = any (p_job_ids);
    select array_agg(distinct d.job_id) into v_waiting
      from dependency as d where d.target_id = any (p_job_ids || v_arrays) and d.state = 'waiting';
    if v_waiting is not null then
        if v_arrays is not null then
            perform _open_tasks(p_job_ids, v_waiting);
        end if;
        perform _judge_dependencies(v_waiting, p_now, p_job_ids || v_arrays);
    end if;
    if exists (select from dependency where state = 'waiting' and kind = 'singleton') then
        perform _judge_dependencies(_first_singletons(array(
            select distinct _name_key(j.uid, j.name)
              from unnest(p_job_ids) as e (id) join job as j on j.id = e.id)), p_now, '{}');
    end if;
end;
$$;
