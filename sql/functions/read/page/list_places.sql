-- odc.list_places: positions in the queue of some pending jobs, as of the last refresh of the expected starts.
-- Returns    a row per job that had a position then; jobs behind all positions lack something and have no row
create or replace function odc.list_places(p_job_ids bigint[])
returns table (job_id bigint, place integer)
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_column
begin
    return query select e.job_id, e.place from eta as e where e.job_id = any (p_job_ids) and e.place < 1000000;
end;
$$;
