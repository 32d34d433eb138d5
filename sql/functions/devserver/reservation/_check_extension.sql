-- odc._check_extension: reject an impossible extension of a reservation. Reads only.
-- Arguments  as extend_reservation
-- Returns    the new end; ends_at: the end of its grace period
-- Raises     as extend_reservation
create or replace function odc._check_extension(
    p_actor jsonb, p_job_id bigint, p_seconds integer, p_now timestamptz,
    out expires_at timestamptz, out ends_at timestamptz)
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_most    constant integer := 86400;
    v_in_all  constant integer := 172800;
    v_job     job;
    v_run     running;
    v_asked   reservation;
    v_limit   record;
    v_booked  record;
begin
    v_job := _own_reservation(p_actor, p_job_id);
    select * into v_run from running as r where r.job_id = p_job_id;
    select * into v_asked from reservation as v where v.job_id = p_job_id;
    if v_run.job_id is null or v_run.state <> 'RUNNING' or v_asked.launched_at is null then
        raise exception using errcode = 'OD012',
            message = format('reservation %s is %s: only an active one can be extended', p_job_id,
                             _reservation_status(coalesce(v_run.state, v_job.state, 'PENDING'), _seen_intent(v_run.job_id, v_run.intent), true)),
            hint = case when v_job.state is not null or _seen_intent(v_run.job_id, v_run.intent) not in ('requeue', 'requeue_hold')
                        then 'Reserve again.'
                        else 'Its time has not started. Cancel it and reserve for longer, or wait until it is active.' end;
    end if;
    if p_seconds is null or p_seconds < 1 or p_seconds > v_most then
        raise exception using errcode = 'OD010',
            message = format('%s hours is not between 0 and 24', round(p_seconds / 3600.0, 2)),
            hint = 'Give the hours to add; decimals are allowed.';
    end if;
    if v_asked.extensions > 0 then
        raise exception using errcode = 'OD012',
            message = format('reservation %s was already extended until %s', p_job_id, _iso(v_asked.expires_at)),
            hint = 'A reservation can be extended once. Reserve another one for the time after it.';
    end if;
    expires_at := v_asked.expires_at + make_interval(secs => p_seconds);
    if expires_at > v_asked.launched_at + make_interval(secs => v_in_all) then
        raise exception using errcode = 'OD012',
            message = format('the reservation would last %s in total, more than the maximum of 48 hours',
                             _duration(extract(epoch from expires_at - v_asked.launched_at)::integer)),
            hint = case when v_asked.duration_s < v_in_all
                        then format('Extend it by at most %s.', _duration(v_in_all - v_asked.duration_s))
                        else 'Reserve another one for the time after it.' end;
    end if;
    select t.name, t.max_time_limit_s into v_limit from partition as t where t.id = v_run.partition_id;
    if v_limit.max_time_limit_s < extract(epoch from expires_at - v_asked.launched_at)
       and not coalesce((p_actor ->> 'operator')::boolean, false) then
        raise exception using errcode = 'OD009',
            message = format('the reservation would last %s in total, more than the limit of %s of partition "%s"',
                             _duration(extract(epoch from expires_at - v_asked.launched_at)::integer),
                             _duration(v_limit.max_time_limit_s), v_limit.name),
            hint = case when v_asked.duration_s < v_limit.max_time_limit_s
                        then format('Extend it by at most %s.', _duration(v_limit.max_time_limit_s - v_asked.duration_s))
                        else 'Reserve another one for the time after it.' end;
    end if;
    ends_at := expires_at + _reservation_grace();
    select n.name as node, _booking_label(k, p_actor) as name, b.starts_at into v_booked
      from _plan_bookings(p_now) as b
      join allocation as a on a.node_id = b.node_id and a.job_id = p_job_id
      join node as n on n.id = a.node_id
      join booking as k on k.id = b.booking_id
     where b.starts_at < _check_extension.ends_at and b.starts_at >= v_run.ends_at
       and b.booking_id is distinct from (select s.booking_id from shape as s where s.id = v_run.shape_id)
     order by b.starts_at limit 1;
    if found then
        raise exception using errcode = 'OD012',
            message = format('node %s is booked from %s on ("%s")', v_booked.node, _iso(v_booked.starts_at), v_booked.name),
            hint = format('Extend it by at most %s.', _duration(greatest(0, extract(epoch from v_booked.starts_at - _reservation_grace() - v_asked.expires_at)::integer)));
    end if;
end;
$$;
