-- odc._past_place: where a job was at the moment that the views of schema odc_past show. A function of its own, so that
-- its plan is kept: the view odc_past.job is in everything that is told of jobs.
-- Arguments  p_ended_at  as it is now, null while it has not ended
-- Returns    live, ended, or null: it was not there yet
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
    -- It was there before: what is known of it begins before the moment.
    select bool_or(p.past_at <= v_at) into v_old
      from (select past_at from odc.pending_past where job_id = p_job_id
             union all
            select past_at from odc.running_past where job_id = p_job_id) as p;
    -- Tasks cancelled together have no such rows; or they are not kept any more.
    return case when coalesce(v_old, p_ended_at <= v_at) then 'ended' end;
end;
$$;
