-- odc._allow_lists: per node, whether the lists of a component allow it to run there.
-- Arguments  p_lists  {"node_list", "exclude_nodes"}; null: all nodes
-- Returns    null: all
create or replace function odc._allow_lists(p_node_ids integer[], p_lists jsonb)
returns boolean[]
language plpgsql stable set search_path = odc, pg_temp as $$
begin
    if p_lists is null then
        return null;
    end if;
    return (select array_agg((jsonb_typeof(p_lists -> 'node_list') <> 'array' or p_lists -> 'node_list' ? n.name)
                             and not (jsonb_typeof(p_lists -> 'exclude_nodes') = 'array' and p_lists -> 'exclude_nodes' ? n.name)
                             order by u.ord)
              from unnest(p_node_ids) with ordinality as u (id, ord)
              join node as n on n.id = u.id);
end;
$$;
