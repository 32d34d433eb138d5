-- odc._resolve_qos: the QOS a job runs under: the requested one, else the default of the user's association, else of the
-- account or the nearest account above, else `normal`.
-- Arguments  p_name  the requested QOS; null: none
-- Raises     OD004 UnknownQos; OD026 NotAllowed
create or replace function odc._resolve_qos(
    p_uid integer, p_user text, p_account_id integer, p_partition_ids integer[], p_name text)
returns integer
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_may   record;
    v_id    integer;
    v_names text;
begin
    -- The case in which nothing is configured, as after an installation.
    select q.id into v_id
      from qos as q join account as a on a.id = p_account_id
     where q.name = coalesce(p_name, 'normal') and not q.restricted and q.deleted_at is null
       and a.parent is null and a.qos_ids is null and a.default_qos_id is null
       and not exists (select from association as m where m.account_id = p_account_id and m.uid = p_uid);
    if found then
        return v_id;
    end if;
    select * into v_may from _allowed_qos(p_uid, p_account_id, p_partition_ids);
    if p_name is null and v_may.chosen is not null then
        return v_may.chosen;
    end if;
    select string_agg(name, ', ' order by name) into v_names from qos where id = any (v_may.allowed);
    select id into v_id from qos where name = coalesce(p_name, 'normal') and deleted_at is null;
    if not found then
        raise exception using errcode = 'OD004',
            message = format('QOS "%s" does not exist', coalesce(p_name, 'normal')),
            hint = format('QOS: %s.', coalesce(v_names, 'none'));
    end if;
    if v_id <> all (v_may.allowed) then
        raise exception using errcode = 'OD026',
            message = case when p_name is null then 'the job names no QOS, and ' else '' end
                      || format(case when p_name is null then 'user %s may not use the default one in account "%s"'
                                     else 'user %s may not use QOS "%3$s" in account "%2$s"' end,
                                p_user, (select name from account where id = p_account_id), p_name),
            hint = format('QOS that %s may use there: %s.', p_user, coalesce(v_names, 'none'));
    end if;
    return v_id;
end;
$$;
