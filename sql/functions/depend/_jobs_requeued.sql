-- odc._jobs_requeued: attempts have ended and their jobs wait again. Counts the tasks of their arrays.
create or replace function odc._jobs_requeued(p_job_ids bigint[], p_now timestamptz)
returns void
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_arrays bigint[];
begin
    select array_agg(distinct j.array_job_id) into v_arrays
      from job as j where j.id = any (p_job_ids) and j.array_job_id is not null;
    if v_arrays is not null then
        perform _recount_arrays(v_arrays);
    end if;
end;
$$;
