-- odc._refuse_unknown_nodes: require nodes that exist, and that were not deleted or removed by their elastic group.
-- Raises     OD007 UnknownNode
create or replace function odc._refuse_unknown_nodes(p_names text[])
returns void
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_unknown text;
    v_known   text;
begin
    select string_agg(format('"%s"', w.name), ', ' order by w.name) into v_unknown
      from unnest(p_names) as w (name)
     where not exists (select from node as n where n.name = w.name and not _is_gone(n));
    if v_unknown is not null then
        select string_agg(name, ', ' order by length(name), name) into v_known
          from (select n.name from node as n where not _is_gone(n) order by length(n.name), n.name limit 20) as n;
        raise exception using errcode = 'OD007',
            message = format('node %s does not exist', v_unknown),
            hint = format('Nodes: %s.', coalesce(v_known, 'none registered'));
    end if;
end;
$$;
