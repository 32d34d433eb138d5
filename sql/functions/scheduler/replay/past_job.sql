-- odc.past_job: the answer of odc.show_jobs as of p_as_of.
-- Raises     OD006 UnknownJob: the job did not exist yet; OD010 BadRequest: as odc.past_jobs
create or replace function odc.past_job(p_as_of timestamptz, p_job_id bigint, p_tasks int4multirange, p_now timestamptz)
returns text
language plpgsql volatile set search_path = odc_past, odc, pg_temp as $$
begin
    perform _travel(p_as_of, p_now);
    return show_jobs(p_job_id, p_tasks, p_as_of);
end;
$$;
