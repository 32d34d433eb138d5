-- odc.delete_qos: delete a QOS, by an operator, with its limits; it is removed from lists that name it.
-- Returns    the QOS before its deletion, JSON text
-- Locks      the turn
-- Raises     OD004 UnknownQos, OD012 WrongState, OD013 NotOwner, OD028 InUse: by jobs, or as a default
create or replace function odc.delete_qos(p_actor jsonb, p_name text, p_now timestamptz)
returns text
language plpgsql volatile set search_path = odc, pg_temp as $$
declare
    v_id   integer;
    v_old  jsonb;
    v_whom text;
    v_jobs bigint;
begin
    perform _check_operator(p_actor, 'delete QOS');
    perform _take_turn(p_now);
    v_id := (_find_qos(array[p_name]))[1];
    v_old := list_qos(p_name)::jsonb -> 0;
    if p_name = 'normal' then
        raise exception using errcode = 'OD012',
            message = 'QOS "normal" cannot be deleted: jobs that name no QOS use it',
            hint = 'Edit it, or make it restricted: odcctl qos edit normal --restricted on.';
    end if;
    select string_agg(w.whom, ', ' order by w.whom) into v_whom
      from (select 'account ' || name as whom from account where default_qos_id = v_id and deleted_at is null
             union all select 'user ' || user_name from association where default_qos_id = v_id) as w;
    select count(*) into v_jobs
      from (select qos_id from pending union all select qos_id from running) as j where j.qos_id = v_id;
    if v_whom is not null or v_jobs > 0 then
        raise exception using errcode = 'OD028',
            message = format('QOS "%s" is in use: %s', p_name,
                             concat_ws('; ', 'the default of ' || v_whom,
                                       case when v_jobs > 0 then v_jobs || ' pending or running ' || case v_jobs when 1 then 'job' else 'jobs' end end)),
            hint = 'Give them another QOS first.';
    end if;
    delete from resource_limit as r where r.scope = 'qos' and r.scope_id = v_id;
    update qos set preempts = array_remove(preempts, v_id) where v_id = any (preempts);
    update account set qos_ids = array_remove(qos_ids, v_id) where v_id = any (qos_ids);
    update association set qos_ids = array_remove(qos_ids, v_id) where v_id = any (qos_ids);
    update qos set deleted_at = p_now where id = v_id;
    insert into event (at, kind, actor, detail)
    values (p_now, 'qos_deleted', p_actor ->> 'user', jsonb_build_object('qos', p_name, 'old', v_old));
    return v_old::text;
end;
$$;
