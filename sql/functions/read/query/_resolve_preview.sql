-- odc._resolve_preview: check the request of a preview as a submission would, without its dependencies and disks.
-- Arguments  p_ask  a job as odc.submit_jobs takes it, with uid, user and operator of the caller
-- Returns    wanted: the shape, without an id
-- Raises     as _resolve_job
create or replace function odc._resolve_preview(
    p_ask jsonb, p_now timestamptz,
    out wanted shape, out uid integer, out account_id integer, out qos_id integer, out time_limit_s integer)
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_column
declare
    v_partition_ids integer[];
    v_user          text;
begin
    uid := coalesce((p_ask ->> 'uid')::integer, -1);
    v_user := coalesce(p_ask ->> 'user', _user_name(uid));
    select r.partition_ids, r.time_limit_s into v_partition_ids, time_limit_s
      from _resolve_partitions(array(select jsonb_array_elements_text(p_ask -> 'partitions')),
                               (p_ask ->> 'time_limit_s')::integer) as r;
    account_id := _resolve_account(uid, v_user, p_ask ->> 'account', v_partition_ids);
    qos_id := _resolve_qos(uid, v_user, account_id, v_partition_ids, p_ask ->> 'qos');
    if not coalesce((p_ask ->> 'operator')::boolean, false)
       and exists (select from booking as b where b.name = p_ask ->> 'booking' and b.state in ('PLANNED', 'ACTIVE')
                      and not _owns_booking(b, _resolve_preview.uid, _resolve_preview.account_id)) then
        raise exception using errcode = 'OD013',
            message = format('booking "%s" is not for user %s and account "%s"', p_ask ->> 'booking', v_user,
                             (select a.name from account as a where a.id = _resolve_preview.account_id)),
            hint = 'Leave --reservation out, or ask an operator to add you.';
    end if;
    wanted := _resolve_shape(p_ask, v_partition_ids);
    perform _check_limits(wanted, uid, v_user, account_id, qos_id, time_limit_s);
    if wanted.booking_id is not null then
        time_limit_s := least(
            time_limit_s, (select _longest_run_s(b, p_now) from booking as b where b.id = wanted.booking_id));
    end if;
end;
$$;
