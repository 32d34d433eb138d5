-- odc._forecast_beside: whether a job may start although protected jobs will need its nodes: it does not run until their start,
-- or leaves them enough.
-- Arguments  p_then  see _forecast_protect;  p_picks  see _forecast_gang;  p_holder  the protected job that claims its nodes; 0: none
--            p_end   when its limit ends, in seconds;  p_nodes, p_fulls  number of nodes; per group: level of a free node
-- Returns    p_then, with what the job takes there if it may start; its last value: whether it may
create or replace function odc._forecast_beside(
    p_then integer[], p_picks integer[], p_holder integer, p_end integer, p_nodes integer, p_fulls integer[])
returns integer[]
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_need constant integer := p_nodes + cardinality(p_fulls);  v_row constant integer := v_need + cardinality(p_fulls) + 3 * p_holder - 2;
    v_last constant integer := p_nodes + 5 * cardinality(p_fulls) + 1;
    v_beside constant boolean := p_holder > 0 and p_then[v_row + 1] < p_end;
    v_hurt integer := 0;  v_group integer;  v_node integer;  v_units integer;
begin
    p_then[v_last] := 1;
    if v_beside then
        for pick in 1..cardinality(p_picks) by 3 loop
            v_group := p_picks[pick];  v_node := p_picks[pick + 1];  v_units := p_picks[pick + 2];
            v_hurt := v_hurt + case
                when v_node = 0 then v_units
                when v_node < 0 then (p_fulls[v_group] - v_units < p_then[v_need + v_group])::integer
                else (p_then[v_node] >= p_then[v_need + v_group] and p_then[v_node] - v_units < p_then[v_need + v_group])::integer end;
        end loop;
        if v_hurt > p_then[v_row + 2] then
            p_then[v_last] := 0;
            return p_then;
        end if;
        p_then[v_row + 2] := p_then[v_row + 2] - v_hurt;
    end if;
    for pick in 1..cardinality(p_picks) by 3 loop
        v_group := p_picks[pick];  v_node := p_picks[pick + 1];  v_units := p_picks[pick + 2];
        if v_node <= 0 then
            p_then[p_nodes + v_group] := p_then[p_nodes + v_group] - case when v_node = 0 then v_units else 1 end;
            continue when v_node = 0;
            v_node := -v_node;  p_then[v_node] := p_fulls[v_group];
        end if;
        if v_beside then
            p_then[v_node] := p_then[v_node] - v_units;
        end if;
    end loop;
    return p_then;
end;
$$;
