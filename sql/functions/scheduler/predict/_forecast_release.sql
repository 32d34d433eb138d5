-- odc._forecast_release: free what ends in a step.
-- Arguments  p_free  see _forecast_lists;  p_ahead, p_entry  see _forecast_ahead; the first release of the step
--            p_nodes, p_fulls, p_domains  see _forecast_lists
create or replace function odc._forecast_release(
    p_free integer[], p_ahead integer[], p_entry integer, p_nodes integer, p_fulls integer[], p_domains integer[])
returns integer[]
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_prev constant integer := 2 * p_nodes;  v_first constant integer := 3 * p_nodes - 63;
    v_whole constant integer := 3 * p_nodes + 64 * cardinality(p_fulls);  v_sum constant integer := v_whole + cardinality(p_fulls);
    v_spare constant integer := v_sum + cardinality(p_fulls);  v_in_domain constant integer := v_spare + cardinality(p_fulls);
    v_group integer;  v_node integer;  v_units integer;  v_level integer;  v_before integer;  v_after integer;
begin
    while p_entry > 0 loop
        v_group := p_ahead[p_entry];  v_node := p_ahead[p_entry + 1];  v_units := p_ahead[p_entry + 2];
        p_entry := p_ahead[p_entry + 3];
        if v_group < 0 then
            -- A part of a limit, see _forecast_use.
            v_node := cardinality(p_free) + 1 + v_group;  p_free[v_node] := p_free[v_node] + v_units;
            continue;
        end if;
        if v_node = 0 then
            p_free[v_whole + v_group] := p_free[v_whole + v_group] + v_units;
            p_free[v_sum + v_group] := p_free[v_sum + v_group] + v_units * p_fulls[v_group];
            p_free[v_in_domain + p_domains[v_group]] := p_free[v_in_domain + p_domains[v_group]] + v_units;
            continue;
        end if;
        v_level := p_free[v_node];  v_after := p_free[p_nodes + v_node];  v_before := p_free[v_prev + v_node];
        if v_before > 0 then
            p_free[p_nodes + v_before] := v_after;
        else
            p_free[v_first + 64 * v_group + v_level] := v_after;
        end if;
        if v_after > 0 then
            p_free[v_prev + v_after] := v_before;
        end if;
        v_units := least(p_fulls[v_group], v_level + v_units) - v_level;  v_level := v_level + v_units;
        p_free[v_sum + v_group] := p_free[v_sum + v_group] + v_units;
        if v_level = p_fulls[v_group] then
            p_free[v_whole + v_group] := p_free[v_whole + v_group] + 1;
            p_free[v_in_domain + p_domains[v_group]] := p_free[v_in_domain + p_domains[v_group]] + 1;
            p_free[p_nodes + v_node] := p_free[v_spare + v_group];  p_free[v_spare + v_group] := v_node;
        else
            v_after := p_free[v_first + 64 * v_group + v_level];  p_free[v_first + 64 * v_group + v_level] := v_node;
            p_free[v_node] := v_level;  p_free[p_nodes + v_node] := v_after;  p_free[v_prev + v_node] := 0;
            if v_after > 0 then
                p_free[v_prev + v_after] := v_node;
            end if;
        end if;
    end loop;
    return p_free;
end;
$$;
