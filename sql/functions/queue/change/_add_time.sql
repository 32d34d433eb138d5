-- odc._add_time: a change of a job's time limit by some seconds, as a change to a time limit.
-- Arguments  p_changes  with time_limit_add_s, which may be negative
-- Returns    the changes with time_limit_s instead
-- Raises     OD010 BadRequest: both are given; OD012 WrongState: the job has no time limit
create or replace function odc._add_time(p_job_id bigint, p_changes jsonb)
returns jsonb
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_limit integer := (select j.time_limit_s from job as j where j.id = p_job_id);
begin
    if p_changes ? 'time_limit_s' then
        raise exception using errcode = 'OD010',
            message = 'the request has both a time limit and an amount to add to it', hint = 'Give one of them.';
    elsif v_limit = 2147483647 then
        raise exception using errcode = 'OD012',
            message = format('job %s has no time limit, so nothing can be added to it', p_job_id),
            hint = 'Give a time limit without a sign.';
    end if;
    return p_changes - 'time_limit_add_s' || jsonb_build_object(
        'time_limit_s', least(v_limit + (p_changes ->> 'time_limit_add_s')::bigint, 2147483646));
end;
$$;
