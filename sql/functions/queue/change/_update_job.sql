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
    v_operator constant boolean := coalesce((p_actor ->> 'operator')::boolean, false);
    v_job      job;                     -- before the change
    v_changed  job;
    v_shape    shape;
    v_booking  text;
    v_account  integer;
    v_qos      integer;
begin
    select * into strict v_job from job where id = p_job_id for update;
    perform _check_place(p_job_id, p_place, p_changes);
    perform _check_change(v_job, p_place, v_operator, p_changes, p_now);

    select s.* into v_shape from shape as s where s.id = v_job.shape_id;
    v_booking := (select b.name from booking as b where b.id = v_shape.booking_id);
    v_shape := _change_shape(v_job, v_shape, v_booking, p_place, v_operator, p_changes, p_now);
    select c.account_id, c.qos_id into v_account, v_qos
      from _change_account(v_job, v_shape.partition_ids, v_operator, p_changes, p_now) as c;
    if p_place = 'pending' and p_changes ?| '{account,qos,time_limit_s,partitions}' then
        perform _check_limits(v_shape, v_job.uid, v_job.user_name, v_account, v_qos,
                              coalesce((p_changes ->> 'time_limit_s')::integer, v_job.time_limit_s));
    end if;

    v_changed := _store_change(p_job_id, v_shape, v_account, v_qos, p_changes, p_now);
    if p_place = 'pending' then
        perform _check_submitted(v_job, v_account, v_qos, v_shape.partition_ids);
    end if;
    if p_changes ? 'array_throttle' then
        update array_job set throttle = v_changed.array_throttle where job_id = v_job.array_job_id;
    end if;
    if p_changes ? 'name' then
        update dependency set name_key = _name_key(v_job.uid, v_changed.name) where job_id = p_job_id and kind = 'singleton';
    end if;
    if p_changes ? 'dependency' then
        perform _replace_dependency(p_job_id, p_changes -> 'dependency', p_now);
    end if;
    return (select jsonb_object_agg(k, case k when 'booking' then to_jsonb(v_booking)
                                              when 'partitions' then to_jsonb(v_job) -> 'partition_ids'
                                              when 'account' then (
                                                  select to_jsonb(a.name) from account as a where a.id = v_job.account_id)
                                              when 'qos' then (
                                                  select to_jsonb(q.name) from qos as q where q.id = v_job.qos_id)
                                              else to_jsonb(v_job) -> k end)
              from jsonb_object_keys(p_changes) as k);
end;
$$;
