-- odc._forecast_take: take what a job that starts uses.
-- Arguments  p_free  see _forecast_lists;  p_picks  see _forecast_gang;  p_nodes, p_fulls, p_domains  see _forecast_release
create or replace function odc._forecast_take(
    p_free integer[], p_picks integer[], p_nodes integer, p_fulls integer[], p_domains integer[])
returns integer[]
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_prev constant integer := 2 * p_nodes;  v_first constant integer := 3 * p_nodes - 63;
    v_whole constant integer := 3 * p_nodes + 64 * cardinality(p_fulls);  v_sum constant integer := v_whole + cardinality(p_fulls);
    v_spare constant integer := v_sum + cardinality(p_fulls);  v_in_domain constant integer := v_spare + cardinality(p_fulls);
    v_group integer;  v_node integer;  v_units integer;  v_level integer;  v_before integer;  v_after integer;
begin
    for pick in 1..cardinality(p_picks) by 3 loop
        v_group := p_picks[pick];  v_node := p_picks[pick + 1];  v_units := p_picks[pick + 2];
        if v_node <= 0 then
            p_free[v_whole + v_group] := p_free[v_whole + v_group] - case when v_node = 0 then v_units else 1 end;
            p_free[v_in_domain + p_domains[v_group]] := p_free[v_in_domain + p_domains[v_group]]
                                                        - case when v_node = 0 then v_units else 1 end;
        end if;
        p_free[v_sum + v_group] := p_free[v_sum + v_group] - case when v_node = 0 then v_units * p_fulls[v_group] else v_units end;
        continue when v_node = 0;
        if v_node < 0 then
            v_node := -v_node;  v_level := p_fulls[v_group];
            p_free[v_spare + v_group] := p_free[p_nodes + v_node];
        else
            v_level := p_free[v_node];  v_after := p_free[p_nodes + v_node];  v_before := p_free[v_prev + v_node];
            if v_before > 0 then
                p_free[p_nodes + v_before] := v_after;
            else
                p_free[v_first + 64 * v_group + v_level] := v_after;
            end if;
            if v_after > 0 then
                p_free[v_prev + v_after] := v_before;
            end if;
        end if;
        v_level := v_level - v_units;
        v_after := p_free[v_first + 64 * v_group + v_level];  p_free[v_first + 64 * v_group + v_level] := v_node;
        p_free[v_node] := v_level;  p_free[p_nodes + v_node] := v_after;  p_free[v_prev + v_node] := 0;
        if v_after > 0 then
            p_free[v_prev + v_after] := v_node;
        end if;
    end loop;
    return p_free;
end;
$$;
