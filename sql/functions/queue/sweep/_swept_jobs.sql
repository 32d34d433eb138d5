-- odc._swept_jobs: the jobs that one step of a sweep changes.
-- Arguments  p_step   begin: pending jobs whose begin time has come; deadline: those past their deadline; limit: running
--                     jobs past their deadline or time limit; delays: jobs with a delay that is over; other steps have none
--            p_most   maximum number of pending jobs
--            p_aside  jobs to leave out
-- Returns    null: there are none
create or replace function odc._swept_jobs(
    p_step text, p_now timestamptz, p_keeps_time boolean, p_most integer, p_aside bigint[])
returns bigint[]
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    -- The executor ends a job at its limit, and the job may use its grace; a job still there after that is stopped again.
    v_overrun constant interval := '60 seconds';
begin
    return case p_step
        when 'begin' then
            (select array_agg(d.job_id)
               from (select job_id from pending
                      where not begun and begin_at <= p_now and job_id <> all (p_aside)
                      order by begin_at limit p_most) as d)
        when 'deadline' then
            (select array_agg(d.job_id)
               from (select job_id from pending
                      where deadline_at <= p_now and job_id <> all (p_aside)
                      order by deadline_at limit p_most) as d)
        when 'delays' then
            (select array_agg(distinct d.job_id)
               from (select job_id from dependency
                      where state = 'waiting' and due_at <= p_now and job_id <> all (p_aside)
                      order by due_at limit p_most) as d)
        when 'limit' then
            (select array_agg(job_id)
               from running
              where intent is null and job_id <> all (p_aside)
                and (deadline_at <= p_now or ends_at < p_now - v_overrun or not p_keeps_time and ends_at <= p_now))
        end;
end;
$$;
