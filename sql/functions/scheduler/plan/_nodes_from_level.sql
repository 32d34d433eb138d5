-- odc._nodes_from_level: the nodes of some groups that have at least so many free GPUs.
-- Arguments  p_gpus  -1: all GPUs of the node;  the others  see _free_lists
create or replace function odc._nodes_from_level(
    p_free bigint[], p_nodes integer, p_groups integer[], p_gpus integer, p_group_gpus integer[], p_max_level integer)
returns integer[]
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_found integer[] := '{}';  v_count integer := 0;
    v_group integer;  v_node integer;
begin
    foreach v_group in array p_groups loop
        for v_level in (case when p_gpus < 0 then p_group_gpus[v_group] else p_gpus end)..p_max_level loop
            v_node := p_free[7 * p_nodes + (v_group - 1) * 64 + v_level + 1];
            while v_node > 0 loop
                v_count := v_count + 1;  v_found[v_count] := v_node;
                v_node := p_free[5 * p_nodes + v_node];
            end loop;
        end loop;
    end loop;
    return v_found;
end;
$$;
