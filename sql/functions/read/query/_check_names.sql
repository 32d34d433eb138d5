-- odc._check_names: refuse a filter by a name that does not exist, because it could find nothing.
-- Arguments  p_filters  as in odc.list_jobs: checks partition, account and qos, each one name or []
-- Raises     OD001 UnknownPartition, OD002 UnknownAccount, OD004 UnknownQos
create or replace function odc._check_names(p_filters jsonb)
returns void
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_wrong record;
begin
    select k.code, k.label, k.listed, w.name, k.names into v_wrong
      from (values
          (1, 'OD001', 'partition', 'Partitions', 'partition', array(select name from partition order by name)),
          (2, 'OD002', 'account', 'Accounts', 'account', array(select name from account order by name)),
          (3, 'OD004', 'QOS', 'QOS', 'qos', array(select name from qos order by name))
      ) as k (ord, code, label, listed, key, names)
     cross join lateral unnest(_words(p_filters -> k.key)) as w (name)
     where w.name <> all (k.names)
     order by k.ord
     limit 1;
    if found then
        raise exception using errcode = v_wrong.code,
            message = format('%s "%s" does not exist', v_wrong.label, v_wrong.name),
            hint = format('%s: %s.', v_wrong.listed, array_to_string(v_wrong.names, ', '));
    end if;
end;
$$;
