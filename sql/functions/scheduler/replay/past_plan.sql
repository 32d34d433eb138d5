-- odc.past_plan: the answer of odc.list_plan as of p_as_of.
-- Raises     OD010 BadRequest: as odc.past_jobs
create or replace function odc.past_plan(p_as_of timestamptz, p_now timestamptz)
returns text
language plpgsql volatile set search_path = odc_past, odc, pg_temp as $$
begin
    perform _travel(p_as_of, p_now);
    return list_plan(p_as_of);
end;
$$;
