-- odc._resolve_job: one job's ask against what exists and what is allowed: everything but its own texts.
-- Arguments  p_ask       the job as submitted, without what is its alone (name, script, paths, ...)
--            p_operator  may it go before others?
--            p_keep      false: write nothing; shape_id is null then for a shape that is new
-- Raises     OD001 UnknownPartition, OD002 UnknownAccount, OD004 UnknownQos, OD005 UnknownGpuType,
--            OD007 UnknownNode, OD008 NeverFits, OD009 LimitExceeded, OD010 BadRequest, OD012 WrongState,
--            OD013 NotOwner, OD016 NotImplementedYet
create or replace function odc._resolve_job(
    p_ask jsonb, p_operator boolean, p_keep boolean, p_now timestamptz,
    out shape_id integer, out account_id integer, out qos_id integer, out time_limit_s integer)
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_ask           record;
    v_partition_ids integer[];
    v_start_at      timestamptz;
begin
    select * into v_ask
      from jsonb_to_record(p_ask) as a (
           partitions text[], account text, qos text, nice integer, begin_at timestamptz, deadline_at timestamptz,
           time_limit_s integer);
    if v_ask.nice < 0 and not p_operator then
        raise exception using errcode = 'OD013',
            message = format('nice %s is negative, which only operators may ask for', v_ask.nice),
            hint = 'Leave --nice out, or give a positive one to let others go first.';
    end if;
    select id into account_id from account where name = coalesce(v_ask.account, 'default');
    if not found then
        raise exception using errcode = 'OD002',
            message = format('account "%s" does not exist', coalesce(v_ask.account, 'default')),
            hint = format('Accounts: %s.', (select string_agg(name, ', ' order by name) from account));
    end if;
    select id into qos_id from qos where name = coalesce(v_ask.qos, 'normal');
    if not found then
        raise exception using errcode = 'OD004',
            message = format('QOS "%s" does not exist', coalesce(v_ask.qos, 'normal')),
            hint = format('QOS: %s.', (select string_agg(name, ', ' order by name) from qos));
    end if;
    select r.partition_ids, r.time_limit_s into v_partition_ids, time_limit_s
      from _resolve_partitions(v_ask.partitions, v_ask.time_limit_s) as r;
    if v_ask.deadline_at is not null then
        v_start_at := greatest(p_now, v_ask.begin_at);
        perform _check_deadline(v_ask.deadline_at, v_start_at, v_ask.time_limit_s);
    end if;
    shape_id := _shape_id(_resolve_shape(p_ask, v_partition_ids), p_keep);
end;
$$;
