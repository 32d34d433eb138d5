-- odc._jobs_ended: jobs have ended, with their state in job. Counts the tasks of their arrays and wakes what waits.
-- Arguments  p_job_ids  ids of jobs, tasks, and rows of tasks cancelled together
-- Locks      the caller holds the turn; as _recount_arrays and _judge_dependencies
create or replace function odc._jobs_ended(p_job_ids bigint[], p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_arrays  bigint[];
    v_ok      bigint[];
    v_not_ok  bigint[];
    v_waiting bigint[];
begin
    select array_agg(n.array_job_id), array_agg(n.ok), array_agg(n.not_ok) into v_arrays, v_ok, v_not_ok
      from (select j.array_job_id,
                   count(*) filter (where j.state = 'COMPLETED') as ok,
                   sum(case when j.state = 'COMPLETED' then 0
                            when j.array_tasks is null then 1
                            else _task_count(_tasks_of(j.array_tasks)) end) as not_ok
              from unnest(p_job_ids) as e (id) join job as j on j.id = e.id
             where j.array_job_id is not null
             group by j.array_job_id) as n;
    if v_arrays is not null then
        update array_job as a
           set ended_ok = a.ended_ok + n.ok, ended_not_ok = a.ended_not_ok + n.not_ok
          from unnest(v_arrays, v_ok, v_not_ok) as n (id, ok, not_ok)
         where a.job_id = n.id;
        perform _recount_arrays(v_arrays);
    end if;
    if not exists (select from dependency) then
        return;
    end if;
    delete from dependency as d using unnest(p_job_ids) as e (id) where d.job_id = e.id;
    select array_agg(distinct d.job_id) into v_waiting
      from unnest(p_job_ids || v_arrays) as e (id)
      join dependency as d on d.target_id = e.id and d.state = 'waiting';
    if v_waiting is not null then
        if v_arrays is not null then
            perform _open_tasks(p_job_ids, v_waiting);
        end if;
        perform _judge_dependencies(v_waiting, p_now, p_job_ids || v_arrays);
    end if;
    if exists (select from dependency where state = 'waiting' and kind = 'singleton') then
        perform _judge_dependencies(array_agg(distinct d.job_id), p_now, '{}')
           from (select distinct _name_key(j.uid, j.name) as name_key
                   from unnest(p_job_ids) as e (id) join job as j on j.id = e.id) as k
           join dependency as d on d.name_key = k.name_key and d.state = 'waiting' and d.kind = 'singleton';
    end if;
end;
$$;
