-- odc.list_qos: QOS, highest priority first.
-- Arguments  p_name  null: all
-- Returns    a JSON array
-- Raises     OD004 UnknownQos
create or replace function odc.list_qos(p_name text)
returns text
language plpgsql stable set search_path = odc, pg_temp as $$
begin
    if p_name is not null then
        perform _find_qos(array[p_name]);
    end if;
    return (select coalesce(json_agg(_qos_json(q) order by q.priority desc, q.name), '[]')
              from qos as q
             where q.deleted_at is null and (p_name is null or q.name = p_name));
end;
$$;
