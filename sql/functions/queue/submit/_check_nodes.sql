-- odc._check_nodes: refuse names of nodes that do not exist, or that were deleted.
-- Raises     OD007 UnknownNode
create or replace function odc._check_nodes(p_names text[])
returns void
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_unknown text;
    v_known   text;
begin
    select string_agg(format('"%s"', w.name), ', ' order by w.ord) into v_unknown
      from (select w.name, w.ord from unnest(p_names) with ordinality as w (name, ord)
             where not exists (select from node as n where n.name = w.name and not _is_gone(n))
             order by w.ord limit 10) as w;
    if v_unknown is null then
        return;
    end if;
    select string_agg(name, ', ' order by length(name), name) into v_known
      from (select n.name from node as n where not _is_gone(n) order by length(n.name), n.name limit 20) as n;
    raise exception using errcode = 'OD007',
        message = format('node %s does not exist', v_unknown),
        hint = format('Nodes: %s.', coalesce(v_known, 'none registered'));
end;
$$;
