-- odc._resolve_job: check one job's request against existing objects and permissions: everything except its own texts.
-- Arguments  p_ask       the job as submitted, without its individual fields (name, script, paths, ...)
--            p_uid, p_user  the submitting user
--            p_operator  whether the job may go before others
-- Returns    wanted: the shape, without an id: nothing is written
-- Raises     OD001 UnknownPartition, OD002 UnknownAccount, OD004 UnknownQos, OD005 UnknownGpuType,
--            OD007 UnknownNode, OD008 NeverFits, OD009 LimitExceeded, OD010 BadRequest, OD012 WrongState,
--            OD013 NotOwner, OD016 NotImplementedYet, OD018 UnknownBooking, OD025 UnknownLicence, OD026 NotAllowed
create or replace function odc._resolve_job(
    p_ask jsonb, p_uid integer, p_user text, p_operator boolean, p_now timestamptz,
    out wanted shape, out account_id integer, out qos_id integer, out time_limit_s integer)
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_ask           record;
    v_partition_ids integer[];
    v_start_at      timestamptz;
begin
    select * into v_ask
      from jsonb_to_record(p_ask) as a (
           partitions text[], account text, qos text, nice integer, begin_at timestamptz, deadline_at timestamptz,
           time_limit_s integer, booking text);
    if v_ask.nice < 0 and not p_operator then
        raise exception using errcode = 'OD013',
            message = format('nice value %s is negative, which only operators may set', v_ask.nice),
            hint = 'Leave --nice out, or use a positive value to let other jobs go first.';
    end if;
    select r.partition_ids, r.time_limit_s into v_partition_ids, time_limit_s
      from _resolve_partitions(v_ask.partitions, v_ask.time_limit_s) as r;
    account_id := _resolve_account(p_uid, p_user, v_ask.account, v_partition_ids);
    qos_id := _resolve_qos(p_uid, p_user, account_id, v_partition_ids, v_ask.qos);
    v_start_at := greatest(p_now, v_ask.begin_at);
    if v_ask.booking is not null then
        select r.time_limit_s into time_limit_s
          from _resolve_booking(v_ask.booking, p_uid, p_user, p_operator, account_id, v_start_at,
                                v_ask.time_limit_s, time_limit_s) as r;
    end if;
    if v_ask.deadline_at is not null then
        perform _check_deadline(v_ask.deadline_at, v_start_at, v_ask.time_limit_s);
    end if;
    wanted := _resolve_shape(p_ask, v_partition_ids);
    perform _check_limits(wanted, p_uid, p_user, account_id, qos_id, time_limit_s);
end;
$$;
