-- odc._find_qos: QOS by name.
-- Returns    their ids, in the order of the names; null if p_names is null
-- Raises     OD004 UnknownQos
create or replace function odc._find_qos(p_names text[])
returns integer[]
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_unknown text;
begin
    select string_agg(format('"%s"', w.name), ', ' order by w.name) into v_unknown
      from unnest(p_names) as w (name)
     where not exists (select from qos as q where q.name = w.name and q.deleted_at is null);
    if v_unknown is not null then
        raise exception using errcode = 'OD004',
            message = format('QOS %s does not exist', v_unknown),
            hint = format('QOS: %s.', (select string_agg(name, ', ' order by name) from qos where deleted_at is null));
    end if;
    return case when p_names is not null then array(
        select q.id from (select name, min(n) as n from unnest(p_names) with ordinality as u (name, n) group by name) as w
          join qos as q on q.name = w.name order by w.n) end;
end;
$$;
