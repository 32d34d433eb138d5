-- odc.extend_reservation: let an active reservation go on longer: once, by at most 24 hours, to 48 hours in all since it
-- became active.
-- Arguments  p_actor    {user, uid, operator}
--            p_seconds  how much longer
--            p_dry_run  only tell: what it changes and the plan with it are made, and undone
-- Returns    JSON {id, expires_at, extended_s, extensions, until, delays: [{job_id, name, user, from, to}], dry_run}: delays are planned
--            starts that come later with it; until: the latest end that can be
-- Locks      the turn; running, reservation, allocation
-- Raises     OD006 UnknownJob, OD009 LimitExceeded, OD010 BadRequest, OD012 WrongState, OD013 NotOwner
create or replace function odc.extend_reservation(
    p_actor jsonb, p_job_id bigint, p_seconds integer, p_now timestamptz, p_dry_run boolean default false)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_most    constant integer := 86400;
    v_in_all  constant integer := 172800;
    v_job     job;
    v_run     running;
    v_asked   reservation;
    v_expires timestamptz;
    v_ends    timestamptz;
    v_before  record;
    v_after   record;
    v_limit   record;
    v_booked  record;
    v_delays  json;
begin
    perform _take_turn(p_now);
    v_job := _own_reservation(p_actor, p_job_id);
    select * into v_run from running as r where r.job_id = p_job_id for update;
    select * into v_asked from reservation as v where v.job_id = p_job_id for update;
    if v_run.job_id is null or v_run.state <> 'RUNNING' or v_asked.launched_at is null then
        raise exception using errcode = 'OD012',
            message = format('reservation %s is %s: only an active one is extended', p_job_id,
                             _reservation_status(coalesce(v_run.state, v_job.state, 'PENDING'), v_run.intent, true)),
            hint = case when v_job.state is not null or v_run.intent is not null then 'Reserve again.'
                        else 'Its time has not begun to run. Cancel it and reserve for longer, or wait until it is active.' end;
    end if;
    if p_seconds is null or p_seconds < 1 or p_seconds > v_most then
        raise exception using errcode = 'OD010',
            message = format('%s hours is not between 0 and 24', round(p_seconds / 3600.0, 2)),
            hint = 'Give the hours to add; decimals are allowed.';
    end if;
    if v_asked.extensions > 0 then
        raise exception using errcode = 'OD012',
            message = format('reservation %s was extended already, until %s', p_job_id, _iso(v_asked.expires_at)),
            hint = 'It can be extended once. Reserve another one for the time after it.';
    end if;
    v_expires := v_asked.expires_at + make_interval(secs => p_seconds);
    if v_expires > v_asked.launched_at + make_interval(secs => v_in_all) then
        raise exception using errcode = 'OD012',
            message = format('that would make %s in all, and 48 hours is the most',
                             _duration(extract(epoch from v_expires - v_asked.launched_at)::integer)),
            hint = format('Extend it by at most %s.', _duration(v_in_all - v_asked.duration_s));
    end if;
    select t.name, t.max_time_limit_s into v_limit from partition as t where t.id = v_run.partition_id;
    if v_limit.max_time_limit_s < extract(epoch from v_expires - v_asked.launched_at)
       and not coalesce((p_actor ->> 'operator')::boolean, false) then
        raise exception using errcode = 'OD009',
            message = format('that would make %s in all, above the %s of partition "%s"',
                             _duration(extract(epoch from v_expires - v_asked.launched_at)::integer),
                             _duration(v_limit.max_time_limit_s), v_limit.name),
            hint = format('Extend it by at most %s.', _duration(v_limit.max_time_limit_s - v_asked.duration_s));
    end if;
    v_ends := v_expires + _reservation_grace();
    select n.name as node, k.name, b.starts_at into v_booked
      from _plan_bookings(p_now) as b
      join allocation as a on a.node_id = b.node_id and a.job_id = p_job_id
      join node as n on n.id = a.node_id
      join booking as k on k.id = b.booking_id
     where b.starts_at < v_ends and b.starts_at >= v_run.ends_at
       and b.booking_id is distinct from (select s.booking_id from shape as s where s.id = v_run.shape_id)
     order by b.starts_at limit 1;
    if found then
        raise exception using errcode = 'OD012',
            message = format('node %s is booked from %s on ("%s")', v_booked.node, _iso(v_booked.starts_at), v_booked.name),
            hint = format('Extend it by at most %s.', _duration(greatest(0, extract(epoch from v_booked.starts_at - _reservation_grace() - v_asked.expires_at)::integer)));
    end if;

    select d.* into v_before from decide(p_now) as d;
    begin
        update reservation
           set expires_at = v_expires, extensions = extensions + 1, extended_s = extended_s + p_seconds, extended_at = p_now,
               stale_files = stale_files or exists (select from reservation_warning as w where w.job_id = p_job_id)
         where job_id = p_job_id
        returning * into v_asked;
        update running set ends_at = v_ends, time_limit_s = time_limit_s + p_seconds where job_id = p_job_id;
        update allocation set ends_at = v_ends where job_id = p_job_id;
        update job set time_limit_s = time_limit_s + p_seconds where id = p_job_id;
        select d.* into v_after from decide(p_now) as d;
        select coalesce(json_agg(json_build_object('job_id', b.id, 'name', j.name, 'user', j.user_name, 'from', _iso(b.at), 'to', _iso(w.at))
                                 order by b.at, b.id), '[]')
          into v_delays
          from unnest(v_before.head_jobs, v_before.head_ats) as b (id, at)
          join job as j on j.id = b.id
          left join unnest(v_after.head_jobs, v_after.head_ats) as w (id, at) on w.id = b.id
         where b.at is not null and (w.at is null or w.at > b.at) and b.id <> all (coalesce(v_after.start_jobs, '{}'));
        insert into event (at, kind, actor, job_id, detail)
        values (p_now, 'extended', p_actor ->> 'user', p_job_id,
                jsonb_build_object('by_s', p_seconds, 'expires_at', _iso(v_expires), 'delays', json_array_length(v_delays)));
        notify odc;
        if p_dry_run then
            raise exception using errcode = 'OD999';
        end if;
    exception when sqlstate 'OD999' then
        null;   -- undone; what was found out stays in the variables
    end;
    return json_build_object(
        'id', p_job_id, 'expires_at', _iso(v_expires), 'extended_s', v_asked.extended_s, 'extensions', v_asked.extensions,
        'until', _iso(v_asked.launched_at + make_interval(secs => least(v_in_all, v_asked.duration_s + v_most))),
        'delays', v_delays, 'dry_run', p_dry_run)::text;
end;
$$;
