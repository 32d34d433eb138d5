-- odc.past_page: the answer of odc.show_page as of p_as_of.
-- Raises     OD006 UnknownJob: the job did not exist yet; OD010 BadRequest: as odc.past_jobs
create or replace function odc.past_page(
    p_as_of timestamptz, p_job_id bigint, p_tasks int4multirange, p_after bigint, p_limit integer, p_now timestamptz)
returns table (jobs text, next bigint)
language plpgsql volatile set search_path = odc_past, odc, pg_temp as $$
begin
    perform _travel(p_as_of, p_now);
    return query select s.jobs, s.next from show_page(p_job_id, p_tasks, p_after, p_limit, p_as_of) as s;
end;
$$;
