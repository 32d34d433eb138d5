-- odc._own_reservation: the job of a reservation, if the actor may act on it.
-- Raises     OD006 UnknownJob: no reservation has this id; OD013 NotOwner
create or replace function odc._own_reservation(p_actor jsonb, p_job_id bigint)
returns odc.job
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_job job;
begin
    select * into v_job from job as j where j.id = p_job_id and j.kind = 'reservation';
    if v_job.id is null then
        raise exception using errcode = 'OD006',
            message = case when exists (select from job as j where j.id = p_job_id)
                           then format('job %s is not a reservation', p_job_id)
                           else format('reservation %s does not exist', p_job_id) end,
            hint = '`odcctl list --all` lists yours.';
    elsif v_job.uid <> (p_actor ->> 'uid')::integer and not coalesce((p_actor ->> 'operator')::boolean, false) then
        raise exception using errcode = 'OD013',
            message = format('reservation %s belongs to %s', p_job_id, v_job.user_name),
            hint = 'Only its owner and operators may do that.';
    end if;
    return v_job;
end;
$$;
