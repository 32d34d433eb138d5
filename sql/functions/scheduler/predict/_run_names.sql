-- odc._run_names: the numbers of the names of jobs: see _run_name.
-- Looked up by id, however small the table was when the plan was made: it only grows.
-- Returns    an element per id, in the same order
create or replace function odc._run_names(p_job_ids bigint[])
returns bigint[]
language plpgsql stable set search_path = odc, pg_temp
    set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off as $$
begin
    return (select array_agg(_run_name(j.name) order by u.o)
              from unnest(p_job_ids) with ordinality as u (id, o)
              left join job as j on j.id = u.id);
end;
$$;
