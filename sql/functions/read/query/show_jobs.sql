-- odc.show_jobs: all details of a job, or of every row of an array, oldest first.
-- Arguments  p_job_id, p_tasks  as in odc.resolve_jobs
--            p_now              an earlier planned start is shown as p_now
-- Returns    a JSON array, never empty
-- Raises     OD006 UnknownJob
create or replace function odc.show_jobs(p_job_id bigint, p_tasks int4multirange, p_now timestamptz)
returns text
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_ids constant bigint[] := array(select job_id from resolve_jobs(p_job_id, p_tasks));
begin
    if v_ids = '{}' then
        perform odc._refuse_unknown(p_job_id, p_tasks);
    end if;
    return odc._render_jobs(v_ids, 'oldest', null, p_now);
end;
$$;
