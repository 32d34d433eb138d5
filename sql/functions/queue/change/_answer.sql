-- odc._answer: the line of one job in the answer to a change.
create or replace function odc._answer(
    p_job_id bigint, p_task integer, p_outcome text, p_code text default null, p_message text default null,
    p_hint text default null)
returns json
language sql stable as $$
    select json_build_object('job_id', p_job_id, 'array_task_id', p_task, 'outcome', p_outcome,
                             'code', p_code, 'message', p_message, 'hint', p_hint);
$$;
