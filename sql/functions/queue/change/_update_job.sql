-- odc._update_job: change one job. The caller then recounts which tasks of its array may start, and judges singletons
-- of the old and the new name, once for all jobs that it changes.
-- Arguments  p_place  pending or running, where the caller has locked it; or ended: then only the comment may change
-- Returns    the old values of the changed fields
-- Raises     OD009 LimitExceeded, OD010 BadRequest, OD011 BadDependency, OD012 WrongState, OD013 NotOwner, and what
--            submit raises for partitions, bookings, accounts, QOS and limits
create or replace function odc._update_job(
    p_actor jsonb, p_job_id bigint, p_place text, p_changes jsonb, p_now timestamptz)
returns jsonb
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_operator boolean := coalesce((p_actor ->> 'operator')::boolean, false);
    v_pending_only constant text[] := '{nice,partitions,dependency,begin_at,booking,account,qos}';
    v_job    job;
    v_shape  shape;
    v_wrong  text;
    v_limit  integer := (p_changes ->> 'time_limit_s')::integer;
    v_ask    record;
    v_from   timestamptz;
    v_booked text;
    v_account integer;
    v_qos     integer;
begin
    select * into strict v_job from job where id = p_job_id for update;
    if p_place = 'ended' and p_changes - 'comment' <> '{}' then
        raise exception using errcode = 'OD012',
            message = format('job %s has ended', p_job_id), hint = 'Only its comment can be changed.';
    end if;
    if p_place = 'running' then
        select string_agg(k, ', ' order by k) into v_wrong
          from jsonb_object_keys(p_changes) as k where k = any (v_pending_only);
        if v_wrong is not null then
            raise exception using errcode = 'OD012',
                message = format('job %s is running: its %s can no longer be changed', p_job_id, v_wrong),
                hint = 'The name, comment, deadline, array throttle and time limit of a running job can be changed.';
        end if;
    end if;
    perform _check_change(v_job, p_place, v_operator, p_changes, p_now);

    select s.* into v_shape from shape as s where s.id = v_job.shape_id;
    v_booked := (select b.name from booking as b where b.id = v_shape.booking_id);
    if p_changes ? 'booking' then
        v_shape.booking_id := null;
    end if;
    if p_changes ->> 'booking' is not null
       or v_shape.booking_id is not null and p_place = 'pending' and p_changes ?| '{time_limit_s,begin_at}' then
        v_from := greatest(p_now, case when p_changes ? 'begin_at' then (p_changes ->> 'begin_at')::timestamptz
                                       else v_job.begin_at end);
        select r.booking_id into v_shape.booking_id
          from _resolve_booking(coalesce(p_changes ->> 'booking', v_booked),
                                v_job.uid, v_job.user_name, v_operator, v_job.account_id, v_from, coalesce(v_limit, v_job.time_limit_s), null) as r;
    end if;
    if p_changes ?| '{partitions,booking}' then
        if p_changes ? 'partitions' then
            select r.partition_ids into v_shape.partition_ids
              from _resolve_partitions(_words(p_changes -> 'partitions'), coalesce(v_limit, v_job.time_limit_s)) as r;
            perform _check_max_nodes(v_shape.partition_ids, v_shape.node_count);
        end if;
        if not exists (select from _possible_nodes(v_shape.partition_ids, v_shape.gpu_type, v_shape.constraint_expr,
                                                   _listed_nodes(v_shape), v_shape.exclude_nodes)) then
            perform _refuse_no_nodes(v_shape);
        end if;
        perform _check_fits(v_shape, array_agg(n.partition_id), array_agg(n.gpu_type), array_agg(n.gpus), array_agg(n.cpus),
                            array_agg(n.mem_mib), array_agg(n.domain), array_agg(n.node_count))
           from _possible_nodes(v_shape.partition_ids, v_shape.gpu_type, v_shape.constraint_expr,
                                _listed_nodes(v_shape), v_shape.exclude_nodes) as n;
        v_shape.id := _shape_id(v_shape);
    end if;

    v_account := v_job.account_id;
    v_qos := v_job.qos_id;
    -- In other partitions the account and the QOS may be closed to its user. Operators move jobs all the same.
    if p_changes ? 'account' or p_changes ? 'partitions' and not v_operator then
        v_account := _resolve_account(
            v_job.uid, v_job.user_name,
            coalesce(p_changes ->> 'account', (select a.name from account as a where a.id = v_account)), v_shape.partition_ids);
    end if;
    if p_changes ?| '{account,qos}' or p_changes ? 'partitions' and not v_operator then
        v_qos := _resolve_qos(v_job.uid, v_job.user_name, v_account, v_shape.partition_ids,
                              coalesce(p_changes ->> 'qos', (select q.name from qos as q where q.id = v_qos)));
        insert into usage (account_id, uid, qos_id, user_name, used_at)
        values (v_account, v_job.uid, v_qos, v_job.user_name, p_now)
        on conflict do nothing;
    end if;
    if p_place = 'pending' and p_changes ?| '{account,qos,time_limit_s,partitions}' then
        perform _check_limits(v_shape, v_job.uid, v_job.user_name, v_account, v_qos, coalesce(v_limit, v_job.time_limit_s));
    end if;

    update job
       set time_limit_s = coalesce(v_limit, time_limit_s), account_id = v_account, qos_id = v_qos,
           nice = case when p_changes ? 'nice' then (p_changes ->> 'nice')::integer else nice end,
           partition_ids = coalesce(v_shape.partition_ids, partition_ids),
           shape_id = coalesce(v_shape.id, shape_id),
           name = case when p_changes ? 'name' then p_changes ->> 'name' else name end,
           comment = case when p_changes ? 'comment' then p_changes ->> 'comment' else comment end,
           dependency = case when p_changes ? 'dependency' then p_changes #>> '{dependency,text}' else dependency end,
           begin_at = case when p_changes ? 'begin_at' then (p_changes ->> 'begin_at')::timestamptz else begin_at end,
           deadline_at = case when p_changes ? 'deadline_at' then (p_changes ->> 'deadline_at')::timestamptz
                              else deadline_at end,
           array_throttle = case when p_changes ? 'array_throttle'
                                 then nullif((p_changes ->> 'array_throttle')::integer, 0) else array_throttle end
     where id = p_job_id
    returning * into v_ask;
    update pending
       set time_limit_s = v_ask.time_limit_s, nice = v_ask.nice, shape_id = v_ask.shape_id,
           account_id = v_account, qos_id = v_qos, deadline_at = v_ask.deadline_at
     where job_id = p_job_id;
    if p_place = 'pending' then
        perform _check_submitted(v_job, v_account, v_qos, v_shape.partition_ids);
    end if;
    if p_changes ? 'booking' then
        -- It was held because its booking is over.
        update pending
           set held = null, reason = null,
               eligible_at = case when begun and dependency = 'met' and lacks is null then coalesce(eligible_at, p_now)
                                  else eligible_at end
         where job_id = p_job_id and reason = 'ReservationDeleted';
    end if;
    -- A separate statement, because a job that could not be launched is delayed beyond its own begin time.
    if p_changes ? 'begin_at' then
        update pending
           set begin_at = v_ask.begin_at, begun = coalesce(v_ask.begin_at <= p_now, true),
               reason = case when held is not null then reason end,
               eligible_at = case when not coalesce(v_ask.begin_at <= p_now, true) then null
                                  when held is null and dependency = 'met' and lacks is null then coalesce(eligible_at, p_now)
                                  else eligible_at end
         where job_id = p_job_id;
    end if;
    update running
       set time_limit_s = v_ask.time_limit_s, deadline_at = v_ask.deadline_at,
           ends_at = case when v_limit is null then ends_at when v_limit = 2147483647 then 'infinity'
                          else started_at + make_interval(secs => v_limit) end
     where job_id = p_job_id;
    update allocation as a set ends_at = least(r.ends_at, r.kill_at) from running as r
     where r.job_id = p_job_id and a.job_id = r.job_id and a.ends_at <> least(r.ends_at, r.kill_at);
    if p_changes ? 'array_throttle' then
        update array_job set throttle = v_ask.array_throttle where job_id = v_job.array_job_id;
    end if;
    if p_changes ? 'name' then
        update dependency set name_key = _name_key(v_job.uid, v_ask.name) where job_id = p_job_id and kind = 'singleton';
    end if;
    if p_changes ? 'dependency' then
        perform _replace_dependency(p_job_id, p_changes -> 'dependency', p_now);
    end if;
    return (select jsonb_object_agg(k, case k when 'booking' then to_jsonb(v_booked) when 'partitions' then to_jsonb(v_job) -> 'partition_ids'
                                         when 'account' then (select to_jsonb(a.name) from account as a where a.id = v_job.account_id)
                                         when 'qos' then (select to_jsonb(q.name) from qos as q where q.id = v_job.qos_id)
                                         else to_jsonb(v_job) -> k end)
              from jsonb_object_keys(p_changes) as k);
end;
$$;
