-- odc._refuse_unknown: report that a selector matches nothing.
-- Raises     OD006 UnknownJob, always
create or replace function odc._refuse_unknown(p_job_id bigint, p_tasks int4multirange)
returns void
language plpgsql stable set search_path = odc, pg_temp as $$
begin
    raise exception using errcode = 'OD006',
        message = case when p_tasks is null then format('job %s does not exist', p_job_id)
                       when exists (select from job where id = p_job_id)
                       then format('job %s has no task %s', p_job_id, odc._task_text(p_tasks, null))
                       else format('array %s does not exist', p_job_id) end,
        hint = _unknown_hint(p_job_id);
end;
$$;
