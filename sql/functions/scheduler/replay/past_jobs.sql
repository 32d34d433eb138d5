-- odc.past_jobs: the answer of odc.list_jobs as of p_as_of.
-- Arguments  p_as_of  the moment; changes made at that moment are included
--            the rest  as in odc.list_jobs
-- Raises     OD010 BadRequest: the moment is in the future, or before the recorded past; and as odc.list_jobs
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
