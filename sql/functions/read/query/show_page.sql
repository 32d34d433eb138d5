-- odc.show_page: a page of odc.show_jobs, so that the size of an answer does not depend on an array's number of tasks.
-- Arguments  p_job_id, p_tasks  as in odc.resolve_jobs
--            p_after            the cursor of the page before, an id; null: the first page
--            p_limit            maximum number of jobs
--            p_now              an earlier planned start is shown as p_now
-- Returns    one row: the jobs as a JSON array, and the cursor of the next page or null
-- Raises     OD006 UnknownJob
create or replace function odc.show_page(
    p_job_id bigint, p_tasks int4multirange, p_after bigint, p_limit integer, p_now timestamptz)
returns table (jobs text, next bigint)
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_ids constant bigint[] := array(   -- one more than asked, so that it is known whether there is a next page
        select r.job_id from resolve_jobs(p_job_id, p_tasks) as r
         where p_after is null or r.job_id > p_after
         order by r.job_id limit p_limit + 1);
begin
    if v_ids = '{}' and p_after is null then
        perform odc._refuse_unknown(p_job_id, p_tasks);
    end if;
    jobs := odc._render_jobs(v_ids[1:p_limit], 'oldest', null, p_now);
    next := case when cardinality(v_ids) > p_limit then v_ids[p_limit] end;
    return next;
end;
$$;
