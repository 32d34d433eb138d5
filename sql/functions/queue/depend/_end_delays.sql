-- odc._end_delays: end the delays of `after` that are over; jobs that need not wait any longer become ready.
-- It reads only the terms that are due, at most 50,000 of them: one job may wait for 10,000 terms.
-- Arguments  p_aside  jobs to leave out; p_jobs: only these; null: all
-- Locks      the caller holds the turn; dependency and pending rows of these jobs
create or replace function odc._end_delays(p_now timestamptz, p_aside bigint[] default '{}', p_jobs bigint[] default null)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_jobs bigint[];
begin
    with due as (
        select job_id, ord from dependency
         where state = 'waiting' and due_at <= p_now and job_id <> all (p_aside) and (p_jobs is null or job_id = any (p_jobs))
         order by due_at limit 50000
    ), over as (
        update dependency as d set state = 'met', due_at = null
          from due as u
         where d.job_id = u.job_id and d.ord = u.ord
        returning d.job_id
    )
    select array_agg(distinct job_id) into v_jobs from over;
    perform _judge_dependencies(v_jobs, p_now, '{}');
end;
$$;
