-- odc._forecast_lists: what is free at the beginning of a forecast, as one array that the forecast changes in place. Nodes that
-- are partly free are in lists by their level; free nodes are only counted.
-- Arguments  p_nodes, p_levels  per node: group, level (-1: a job has all of it);  p_fulls, p_domains  see _forecast_shapes
-- Returns    sections, of a row per node: level, next node of its list, previous node (0: none); of 64 rows per group: the
--            first node of each level; of a row per group: free nodes, sum of levels, the first node that is in no list (a
--            list, too); of a row per domain: free nodes
create or replace function odc._forecast_lists(p_nodes integer[], p_levels integer[], p_fulls integer[], p_domains integer[])
returns integer[]
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_next constant integer := cardinality(p_nodes);  v_prev constant integer := 2 * v_next;
    v_first constant integer := 3 * v_next;  v_whole constant integer := v_first + 64 * cardinality(p_fulls);
    v_sum constant integer := v_whole + cardinality(p_fulls);  v_spare constant integer := v_sum + cardinality(p_fulls);
    v_in_domain constant integer := v_spare + cardinality(p_fulls);
    v_free integer[];  v_group integer;  v_level integer;  v_list integer;  v_node integer;
begin
    v_free := p_levels || array_fill(0, array[v_in_domain - v_next + (select max(w.domain) from unnest(p_domains) as w (domain))]);
    for node in reverse cardinality(p_nodes)..1 loop
        v_group := p_nodes[node];  v_level := p_levels[node];
        if v_level = p_fulls[v_group] or v_level < 0 then
            v_free[v_next + node] := v_free[v_spare + v_group];  v_free[v_spare + v_group] := node;
            if v_level > 0 then
                v_free[v_whole + v_group] := v_free[v_whole + v_group] + 1;  v_free[v_sum + v_group] := v_free[v_sum + v_group] + v_level;
                v_free[v_in_domain + p_domains[v_group]] := v_free[v_in_domain + p_domains[v_group]] + 1;
            end if;
        else
            v_free[v_sum + v_group] := v_free[v_sum + v_group] + v_level;
            v_list := v_first + 64 * v_group - 63 + v_level;
            v_node := v_free[v_list];  v_free[v_next + node] := v_node;  v_free[v_list] := node;
            if v_node > 0 then
                v_free[v_prev + v_node] := node;
            end if;
        end if;
    end loop;
    return v_free;
end;
$$;
