-- odc._store_change: write the changed fields of one job to job, pending, running and allocation.
-- Arguments  p_shape                the shape after the change; its id and partitions are null if the job's stay
--            p_account_id, p_qos_id the account and QOS after the change
-- Returns    the changed job
-- Locks      job, pending, running, allocation
create or replace function odc._store_change(
    p_job_id bigint, p_shape odc.shape, p_account_id integer, p_qos_id integer, p_changes jsonb, p_now timestamptz)
returns job
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_limit constant integer := (p_changes ->> 'time_limit_s')::integer;
    v_job   job;
begin
    update job
       set time_limit_s = coalesce(v_limit, time_limit_s), account_id = p_account_id, qos_id = p_qos_id,
           nice = case when p_changes ? 'nice' then (p_changes ->> 'nice')::integer else nice end,
           partition_ids = coalesce(p_shape.partition_ids, partition_ids),
           shape_id = coalesce(p_shape.id, shape_id),
           name = case when p_changes ? 'name' then p_changes ->> 'name' else name end,
           comment = case when p_changes ? 'comment' then p_changes ->> 'comment' else comment end,
           dependency = case when p_changes ? 'dependency' then p_changes #>> '{dependency,text}' else dependency end,
           begin_at = case when p_changes ? 'begin_at' then (p_changes ->> 'begin_at')::timestamptz else begin_at end,
           deadline_at = case when p_changes ? 'deadline_at' then (p_changes ->> 'deadline_at')::timestamptz
                              else deadline_at end,
           array_throttle = case when p_changes ? 'array_throttle'
                                 then nullif((p_changes ->> 'array_throttle')::integer, 0) else array_throttle end
     where id = p_job_id
    returning * into v_job;
    update pending
       set time_limit_s = v_job.time_limit_s, nice = v_job.nice, shape_id = v_job.shape_id,
           account_id = p_account_id, qos_id = p_qos_id, deadline_at = v_job.deadline_at
     where job_id = p_job_id;
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
           set begin_at = v_job.begin_at, begun = coalesce(v_job.begin_at <= p_now, true),
               reason = case when held is not null then reason end,
               eligible_at = case when not coalesce(v_job.begin_at <= p_now, true) then null
                                  when held is null and dependency = 'met' and lacks is null then coalesce(eligible_at, p_now)
                                  else eligible_at end
         where job_id = p_job_id;
    end if;
    update running
       set time_limit_s = v_job.time_limit_s, deadline_at = v_job.deadline_at,
           ends_at = case when v_limit is null then ends_at when v_limit = 2147483647 then 'infinity'
                          else started_at + make_interval(secs => v_limit) end
     where job_id = p_job_id;
    update allocation as a set ends_at = least(r.ends_at, r.kill_at) from running as r
     where r.job_id = p_job_id and a.job_id = r.job_id and a.ends_at <> least(r.ends_at, r.kill_at);
    return v_job;
end;
$$;
