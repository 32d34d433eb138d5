-- odc._past_place: a job's place at the moment that the views of schema odc_past show. It is a separate function so that
-- its plan is cached: every report on jobs uses the view odc_past.job.
-- Arguments  p_ended_at  its current value, null while the job has not ended
-- Returns    live, ended, or null: the job did not exist yet
create or replace function odc._past_place(p_job_id bigint, p_ended_at timestamptz)
returns text
language plpgsql stable set search_path = odc_past, odc, pg_temp as $$
declare
    v_at  constant timestamptz := _past_at();
    v_old boolean;
begin
    if exists (select from odc_past.pending as p where p.job_id = p_job_id)
       or exists (select from odc_past.running as r where r.job_id = p_job_id) then
        return 'live';
    elsif p_ended_at is null then
        return null;
    end if;
    -- It existed before the moment if its past rows begin before the moment.
    select bool_or(p.past_at <= v_at) into v_old
      from (select past_at from odc.pending_past where job_id = p_job_id
             union all
            select past_at from odc.running_past where job_id = p_job_id) as p;
    -- Tasks cancelled together have no such rows, or the rows are no longer kept.
    return case when coalesce(v_old, p_ended_at <= v_at) then 'ended' end;
end;
$$;
