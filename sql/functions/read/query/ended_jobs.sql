-- odc.ended_jobs: how the jobs of a selector ended, after all of them have ended.
-- Arguments  p_job_id, p_tasks  as in odc.resolve_jobs
-- Returns    null while any of them is live; otherwise a JSON array of {id, array_task_id, state, exit_code, signal}
-- Raises     OD006 UnknownJob
create or replace function odc.ended_jobs(p_job_id bigint, p_tasks int4multirange)
returns text
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_jobs text;
    v_live boolean;
begin
    -- Avoid reading a large array while any of it is live.
    if p_tasks is null and not exists (select from settled_among(array[p_job_id])) then
        return null;
    end if;
    select bool_or(j.state is null),
           json_agg(json_build_object('id', j.id, 'array_task_id', j.array_task_id, 'state', j.state,
                                      'exit_code', j.exit_code, 'signal', j.signal) order by j.id)::text
      into v_live, v_jobs
      from resolve_jobs(p_job_id, p_tasks) as n
      join job as j on j.id = n.job_id;
    if v_jobs is null then
        perform odc._refuse_unknown(p_job_id, p_tasks);
    end if;
    return case when not v_live then v_jobs end;
end;
$$;
