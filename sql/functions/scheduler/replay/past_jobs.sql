-- odc.past_jobs: odc.list_jobs as it answered at p_as_of.
-- Arguments  p_as_of  the moment; what was changed at it counts
--            the rest  as of odc.list_jobs
-- Raises     OD010 BadRequest: a moment to come, or before the past is known; and as odc.list_jobs
create or replace function odc.past_jobs(
    p_as_of timestamptz, p_filters jsonb, p_ended boolean, p_after bigint, p_limit integer, p_fields text[],
    p_now timestamptz)
returns table (jobs text, next bigint)
language plpgsql volatile set search_path = odc_past, odc, pg_temp as $$
begin
    perform _travel(p_as_of, p_now);
    return query select l.jobs, l.next from list_jobs(p_filters, p_ended, p_after, p_limit, p_fields, p_as_of) as l;
end;
$$;
