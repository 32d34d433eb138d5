-- odc._allow_nodes: per node, whether a job's lists (--nodelist, --exclude) allow it to run there.
-- Arguments  p_shape_id  negative: the shape of a hypothetical job, p_what_if[-1 - p_shape_id]
--            p_claimed   ids of the nodes that the job claims, separated by commas: it may run only there; null: none
create or replace function odc._allow_nodes(p_node_ids integer[], p_shape_id integer, p_what_if jsonb, p_claimed text)
returns boolean[]
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_ask jsonb := p_what_if -> (-p_shape_id - 1);
    v_on text[];  v_off text[];
begin
    if p_claimed is not null then
        return (select array_agg(u.id::text = any (string_to_array(p_claimed, ',')) order by u.ord)
                  from unnest(p_node_ids) with ordinality as u (id, ord));
    elsif p_shape_id > 0 then
        select s.node_list, s.exclude_nodes into v_on, v_off from shape as s where s.id = p_shape_id;
    else
        v_on := (select array_agg(t) from jsonb_array_elements_text(nullif(v_ask -> 'node_list', 'null')) as t);
        v_off := (select array_agg(t) from jsonb_array_elements_text(nullif(v_ask -> 'exclude_nodes', 'null')) as t);
    end if;
    return (select array_agg(coalesce(n.name = any (v_on), true) and not coalesce(n.name = any (v_off), false) order by u.ord)
              from unnest(p_node_ids) with ordinality as u (id, ord)
              join node as n on n.id = u.id);
end;
$$;
