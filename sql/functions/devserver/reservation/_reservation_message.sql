-- odc._reservation_message: the current activity of a reservation, or how it ended, as one sentence.
create or replace function odc._reservation_message(
    p_job odc.job, p_asked odc.reservation, p_status text, p_phase text, p_nodes text[], p_reason text, p_now timestamptz)
returns text
language sql stable as $$
    select case
        when p_phase = 'cleaning_up' then format('it is %s; its processes are being stopped', p_status)
        when p_status = 'pending' then 'it was just submitted'
        when p_status = 'queued' then format('it waits (%s); `odcctl why %s` explains why', coalesce(p_reason, 'None'), p_job.id)
        when p_status = 'preparing' then format('it is starting on %s', array_to_string(p_nodes, ', '))
        when p_status = 'active' and p_asked.expires_at <= p_now
        then format('its time is over; its processes are stopped at %s%s', odc._iso(p_asked.expires_at + odc._reservation_grace()),
                    case when p_asked.extensions = 0 then format('; `odcctl extend %s` still works', p_job.id) else '' end)
        when p_status = 'active'
        then format('it is active until %s%s', odc._iso(p_asked.expires_at), case when p_asked.extensions > 0 then ', extended once' else '' end)
        when p_status = 'expired' and p_job.state = 'COMPLETED' then format('it ended by itself at %s', odc._iso(p_job.ended_at))
        when p_status = 'expired' then format('its time ended at %s', odc._iso(coalesce(p_asked.expires_at, p_job.ended_at)))
        when p_status = 'cancelled' and p_job.ended_by = 'odcd' then coalesce(p_job.end_detail, 'odcd cancelled it')
        when p_status = 'cancelled' then format('%s cancelled it', coalesce(p_job.ended_by, 'someone'))
        else coalesce(p_job.end_detail, case p_job.reason when 'NodeFail' then 'its node failed' end, lower(p_job.state::text)) end
$$;
