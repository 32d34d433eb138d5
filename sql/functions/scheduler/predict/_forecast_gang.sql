-- odc._forecast_gang: nodes that fit a gang now. Whole nodes come from one domain, parts of nodes from anywhere.
-- Arguments  p_count  nodes;  p_alt_from, p_alt_to, p_group_from, p_group_to, p_alt_groups, p_needs, p_fulls, p_domains  see
--            _forecast_shapes;  p_free, p_nodes  see _forecast_lists; number of nodes
-- Returns    three values each: group, node (0: as many whole nodes as the next value; negative: a whole node of which a part
--            is taken), level that it takes; empty: they do not fit
create or replace function odc._forecast_gang(
    p_count integer, p_alt_from integer, p_alt_to integer, p_group_from integer[], p_group_to integer[], p_alt_groups integer[],
    p_needs integer[], p_fulls integer[], p_domains integer[], p_free integer[], p_nodes integer)
returns integer[]
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_first constant integer := 3 * p_nodes - 63;  v_whole constant integer := 3 * p_nodes + 64 * cardinality(p_fulls);
    v_sum constant integer := v_whole + cardinality(p_fulls);  v_spare constant integer := v_sum + cardinality(p_fulls);
    v_in_domain constant integer := v_spare + cardinality(p_fulls);
    v_picks integer[];  v_got integer;  v_want integer;  v_sole boolean;
    v_group integer;  v_node integer;  v_need integer;  v_wholes integer;
begin
    for alternative in p_alt_from..p_alt_to loop
        v_sole := p_needs[p_group_from[alternative]] = p_fulls[p_alt_groups[p_group_from[alternative]]];
        for domain in 1..(case when v_sole then cardinality(p_free) - v_in_domain else 1 end) loop
            continue when v_sole and p_free[v_in_domain + domain] < p_count;
            v_picks := '{}';  v_got := 0;  v_want := p_count;
            for i in p_group_from[alternative]..p_group_to[alternative] loop
                v_group := p_alt_groups[i];  v_need := p_needs[i];
                continue when p_free[v_sum + v_group] < v_need or v_sole and p_domains[v_group] <> domain;
                for level in v_need..p_fulls[v_group] - 1 loop
                    v_node := p_free[v_first + 64 * v_group + level];
                    while v_node > 0 and v_want > 0 loop
                        v_picks[v_got + 1] := v_group;  v_picks[v_got + 2] := v_node;  v_picks[v_got + 3] := v_need;
                        v_got := v_got + 3;  v_want := v_want - 1;
                        v_node := p_free[p_nodes + v_node];
                    end loop;
                end loop;
                v_wholes := least(v_want, p_free[v_whole + v_group]);  v_node := p_free[v_spare + v_group];
                v_want := v_want - v_wholes;
                if v_wholes > 0 and v_need = p_fulls[v_group] then
                    v_picks[v_got + 1] := v_group;  v_picks[v_got + 2] := 0;  v_picks[v_got + 3] := v_wholes;
                    v_got := v_got + 3;  v_wholes := 0;
                end if;
                for part in 1..v_wholes loop
                    v_picks[v_got + 1] := v_group;  v_picks[v_got + 2] := -v_node;  v_picks[v_got + 3] := v_need;
                    v_got := v_got + 3;  v_node := p_free[p_nodes + v_node];
                end loop;
                if v_want = 0 then
                    return v_picks;
                end if;
            end loop;
        end loop;
    end loop;
    return '{}';
end;
$$;
