-- odc._jobs_started: jobs have been placed. Counts the tasks of their arrays, and wakes what waits for a start.
-- Arguments  p_job_ids  ids with a row in running; of tasks, their own
create or replace function odc._jobs_started(p_job_ids bigint[], p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_arrays bigint[];
begin
    select array_agg(distinct r.array_job_id) into v_arrays
      from running as r where r.job_id = any (p_job_ids) and r.array_job_id is not null;
    if v_arrays is not null then
        update array_job as a
           set started = a.started + n.first
          from (select r.array_job_id, count(*) filter (where r.attempt = 1) as first
                  from running as r where r.job_id = any (p_job_ids) and r.array_job_id is not null
                 group by r.array_job_id) as n
         where a.job_id = n.array_job_id;
        perform _recount_arrays(v_arrays);
    end if;
    perform _judge_dependencies(
        (select array_agg(distinct d.job_id) from dependency as d
          where d.state = 'waiting' and d.kind = 'after' and d.target_id = any (p_job_ids || v_arrays)), p_now);
end;
$$;
