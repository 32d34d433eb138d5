-- odc._close_steps: close the steps of attempts that end, if nothing reported their end before.
-- Arguments  p_job_ids  jobs whose attempt ends
-- Locks      step, in the order of its key
create or replace function odc._close_steps(p_job_ids bigint[], p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
begin
    -- Locked first, and updated without a join, which would compare each step with each.
    perform from step as s
      where s.job_id = any (p_job_ids) and s.state = 'RUNNING'
      order by s.job_id, s.attempt, s.step for update;
    update step as s set state = 'CANCELLED', ended_at = greatest(s.started_at, p_now)
     where s.job_id = any (p_job_ids) and s.state = 'RUNNING';
end;
$$;
