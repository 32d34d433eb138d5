-- odc._planned_nodes: the names of the nodes that a plan gives to one job.
-- Arguments  p_start, p_head  its place among the starts, among the protected jobs; null: it is not among them
--            p_start_nodes, p_alloc_nodes, p_head_nodes  of the plan, as decide returns them
-- Returns    in the order in which people count; empty if the plan has no nodes for it
create or replace function odc._planned_nodes(
    p_start integer, p_head integer, p_start_nodes integer[], p_alloc_nodes integer[], p_head_nodes text[])
returns text[]
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_before integer;               -- nodes of the starts before it
    v_ids    integer[];
begin
    if p_start is not null then
        select coalesce(sum(c), 0) into v_before from unnest(p_start_nodes[:p_start - 1]) as c;
        v_ids := p_alloc_nodes[v_before + 1 : v_before + p_start_nodes[p_start]];
    elsif p_head is not null then
        v_ids := string_to_array(p_head_nodes[p_head], ',')::integer[];
    end if;
    return array(select n.name from node as n where n.id = any (v_ids) order by length(n.name), n.name);
end;
$$;
