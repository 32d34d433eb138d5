-- odc._jobs_ended: jobs have ended, with their state in job. Counts the tasks of their arrays and wakes what waits.
-- Arguments  p_job_ids  ids of jobs, tasks, and rows of cancelled tasks
-- Locks      as _recount_arrays and _judge_dependencies; the caller holds the turn
create or replace function odc._jobs_ended(p_job_ids bigint[], p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_arrays bigint[];
    v_waiting bigint[];
begin
    select array_agg(distinct j.array_job_id) into v_arrays
      from job as j where j.id = any (p_job_ids) and j.array_job_id is not null;
    if v_arrays is not null then
        perform from pending where job_id = any (v_arrays) order by job_id for update;
        update array_job as a
           set ended_ok = a.ended_ok + n.ok, ended_not_ok = a.ended_not_ok + n.not_ok
          from (select j.array_job_id,
                       count(*) filter (where j.state = 'COMPLETED') as ok,
                       sum(case when j.state = 'COMPLETED' then 0
                                when j.array_tasks is null then 1
                                else _task_count(_tasks_of(j.array_tasks)) end) as not_ok
                  from job as j where j.id = any (p_job_ids) and j.array_job_id is not null
                 group by j.array_job_id) as n
         where a.job_id = n.array_job_id;
        perform _recount_arrays(v_arrays);
    end if;
    delete from dependency where job_id = any (p_job_ids);
    select array_agg(distinct d.job_id) into v_waiting
      from dependency as d
     where d.state = 'waiting' and d.target_id = any (p_job_ids || v_arrays);
    if exists (select from dependency where state = 'waiting' and kind = 'singleton') then
        select v_waiting || array_agg(distinct d.job_id) into v_waiting
          from dependency as d
         where d.state = 'waiting' and d.kind = 'singleton'
           and d.name_key in (select _name_key(j.uid, j.name) from job as j where j.id = any (p_job_ids));
    end if;
    perform _judge_dependencies(v_waiting, p_now);
end;
$$;
