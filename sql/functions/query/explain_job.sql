-- odc.explain_job: why one job has not started, and when it should.
-- Arguments  p_now  a planned start before it is given as it
-- Returns    JSON {job_id, state, reason, why, planned_start_at, eta}
-- Raises     OD006 UnknownJob
create or replace function odc.explain_job(p_job_id bigint, p_now timestamptz)
returns text
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_answer constant text := odc._render_jobs(
        array[p_job_id], 'oldest', '{state,reason,why,planned_start_at,eta}', p_now);
begin
    if v_answer = '[]' then
        perform odc._refuse_unknown(p_job_id, null);
    end if;
    return format('{"job_id":%s,%s', p_job_id, substr(v_answer, 3, length(v_answer) - 3));
end;
$$;
