-- odc._choose_domain: the EFA domain that a gang tries next: among the domains with the most nodes that it can use, the
-- one with the fewest whole nodes. 0 stands for all nodes that need no domain.
-- Arguments  p_groups      the groups it may use;  p_tried: domains to skip
--            p_whole_nodes it takes whole nodes;  p_gpus: otherwise, GPUs that it takes per node
--            p_least, p_most  minimum and maximum number of nodes
--            p_domain, p_group_gpus  per group: domain, GPUs per node
--            p_free, p_whole  see _free_lists; after p_whole, per group the number of nodes with all GPUs free
-- Returns    -1: no domain is left
create or replace function odc._choose_domain(
    p_groups integer[], p_tried integer[], p_whole_nodes boolean, p_gpus integer, p_least integer, p_most integer,
    p_domain integer[], p_group_gpus integer[], p_free bigint[], p_whole integer)
returns integer
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_best integer := -1;  v_want integer := 0;  v_sum integer := 2147483647;
    v_nodes integer;  v_domain integer;
    v_group integer;  v_other integer;
begin
    foreach v_group in array p_groups loop
        v_domain := case when p_whole_nodes or p_gpus = p_group_gpus[v_group] then p_domain[v_group] else 0 end;
        continue when v_domain = any (p_tried) or v_domain = v_best;
        if v_domain = 0 then
            v_nodes := 2147483646;
        else
            v_nodes := 0;
            foreach v_other in array p_groups loop
                if p_domain[v_other] = v_domain then
                    v_nodes := v_nodes + p_free[p_whole + v_other];
                end if;
            end loop;
            continue when v_nodes < p_least;
        end if;
        if least(v_nodes, p_most) > v_want or least(v_nodes, p_most) = v_want and v_nodes < v_sum then
            v_want := least(v_nodes, p_most);  v_sum := v_nodes;  v_best := v_domain;
        end if;
    end loop;
    return v_best;
end;
$$;
