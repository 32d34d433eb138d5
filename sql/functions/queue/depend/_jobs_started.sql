-- odc._jobs_started: jobs have been placed. Counts the tasks of their arrays and judges the jobs that wait for a start.
-- Their own dependencies are over, even if they are requeued later.
-- Arguments  p_job_ids  ids with a row in running; for array tasks, the task's own id
-- Locks      the caller holds the turn; array_job; as _refresh_open_counts and _judge_dependencies
create or replace function odc._jobs_started(p_job_ids bigint[], p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_arrays  bigint[];
    v_first   integer[];
    v_counts  integer[];
    v_waiting bigint[];
begin
    select array_agg(n.array_job_id), array_agg(n.first), array_agg(n.n) into v_arrays, v_first, v_counts
      from (select r.array_job_id, count(*) filter (where r.attempt = 1) as first, count(*) as n
              from unnest(p_job_ids) as s (id) join running as r on r.job_id = s.id
             where r.array_job_id is not null
             group by r.array_job_id) as n;
    if v_arrays is not null then
        update array_job as a set started = a.started + n.first, running = a.running + n.n
          from unnest(v_arrays, v_first, v_counts) as n (id, first, n)
         where a.job_id = n.id and a.job_id = any (v_arrays);
        perform _refresh_open_counts(v_arrays);
    end if;
    if not exists (select from dependency) then
        return;
    end if;
    delete from dependency as d where d.job_id = any (p_job_ids);
    select array_agg(distinct d.job_id) into v_waiting
      from dependency as d
     where d.target_id = any (p_job_ids || v_arrays) and d.state = 'waiting' and d.kind = 'after';
    perform _judge_dependencies(v_waiting, p_now, p_job_ids || v_arrays);
end;
$$;
