-- odc.past_why: the answer of odc.explain_job as of p_as_of.
-- Arguments  p_tasks  a task of array p_job_id; null: the job itself
-- Raises     OD006 UnknownJob: the job did not exist yet, or the tasks are several; OD010 BadRequest: as odc.past_jobs
create or replace function odc.past_why(p_as_of timestamptz, p_job_id bigint, p_tasks int4multirange, p_now timestamptz)
returns text
language plpgsql volatile set search_path = pg_temp, odc_past, odc as $$
declare
    v_ids bigint[];
begin
    perform odc._travel(p_as_of, p_now);
    v_ids := case when p_tasks is null then array[p_job_id]
                  else array(select r.job_id from resolve_jobs(p_job_id, p_tasks) as r) end;
    if cardinality(v_ids) <> 1 then
        perform _refuse_unknown(p_job_id, p_tasks);
    end if;
    if exists (select from odc_past.pending as p where p.job_id = v_ids[1] and p.ready) then
        -- The jobs in the way are found by planning.
        perform odc._stand_in();
    end if;
    return explain_job(v_ids[1], p_as_of);
end;
$$;
