-- odc._take_nodes: take what a job that starts now was allocated, and move its nodes to the lists of their new levels.
-- A node goes to the front of a list, so that the next job with room there takes it, too.
-- Arguments  p_free  see _free_lists;  p_allocs  see _allocate_nodes; those after p_from are taken
--            p_list_full  see _free_lists;  p_node_groups  per node;  p_group_*  per group
create or replace function odc._take_nodes(
    p_free bigint[], p_allocs bigint[], p_from integer, p_node_groups integer[], p_group_gpus integer[], p_group_cpus integer[],
    p_list_full boolean)
returns bigint[]
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_nodes constant integer := cardinality(p_node_groups);
    v_groups constant integer := cardinality(p_group_gpus);
    v_words constant integer := (v_groups + 59) / 60;
    v_whole_at constant integer := 7 * v_nodes + 64 * v_groups;
    v_node integer;  v_group integer;  v_level integer;  v_word integer;  v_before integer;  v_after integer;
begin
    for v_at in p_from..cardinality(p_allocs) - 1 by 9 loop
        v_node := p_allocs[v_at + 1];  v_group := p_node_groups[v_node];
        -- Out of its list.
        v_before := p_free[6 * v_nodes + v_node];  v_after := p_free[5 * v_nodes + v_node];
        if v_after > 0 then
            p_free[6 * v_nodes + v_after] := v_before;
        end if;
        if v_before > 0 then
            p_free[5 * v_nodes + v_before] := v_after;
        else
            v_level := _free_level(p_free[v_nodes + v_node], p_free[2 * v_nodes + v_node], p_group_gpus[v_group], p_group_cpus[v_group]);
            p_free[7 * v_nodes + 64 * v_group - 63 + v_level] := v_after;
            if v_after = 0 then
                v_word := v_whole_at + 4 * v_groups + v_level * v_words + (v_group + 59) / 60;
                p_free[v_word] := p_free[v_word] - (1::bigint << ((v_group - 1) % 60));
            end if;
        end if;
        -- The group's totals and the node's amounts.
        if p_allocs[v_at + 3] > 0 then
            if p_free[v_nodes + v_node] = p_group_gpus[v_group] then
                p_free[v_whole_at + v_group] := p_free[v_whole_at + v_group] - 1;
            end if;
            p_free[v_whole_at + 2 * v_groups + v_group] := p_free[v_whole_at + 2 * v_groups + v_group] - p_allocs[v_at + 3];
            p_free[v_node] := p_free[v_node] - p_allocs[v_at + 2];
            p_free[v_nodes + v_node] := p_free[v_nodes + v_node] - p_allocs[v_at + 3];
        end if;
        if p_free[4 * v_nodes + v_node] = 0 then
            p_free[v_whole_at + v_groups + v_group] := p_free[v_whole_at + v_groups + v_group] - 1;
        end if;
        p_free[v_whole_at + 3 * v_groups + v_group] := p_free[v_whole_at + 3 * v_groups + v_group] - p_allocs[v_at + 4];
        p_free[2 * v_nodes + v_node] := p_free[2 * v_nodes + v_node] - p_allocs[v_at + 4];
        p_free[3 * v_nodes + v_node] := p_free[3 * v_nodes + v_node] - p_allocs[v_at + 5];
        p_free[4 * v_nodes + v_node] := p_free[4 * v_nodes + v_node] + 1;
        -- To the front of its new list, unless only jobs without GPUs could use it, and there are none.
        continue when p_free[v_nodes + v_node] = 0 and not p_list_full and p_group_gpus[v_group] > 0;
        v_level := _free_level(p_free[v_nodes + v_node], p_free[2 * v_nodes + v_node], p_group_gpus[v_group], p_group_cpus[v_group]);
        v_after := p_free[7 * v_nodes + 64 * v_group - 63 + v_level];
        p_free[7 * v_nodes + 64 * v_group - 63 + v_level] := v_node;
        p_free[5 * v_nodes + v_node] := v_after;  p_free[6 * v_nodes + v_node] := 0;
        if v_after > 0 then
            p_free[6 * v_nodes + v_after] := v_node;
        else
            v_word := v_whole_at + 4 * v_groups + v_level * v_words + (v_group + 59) / 60;
            p_free[v_word] := p_free[v_word] | (1::bigint << ((v_group - 1) % 60));
        end if;
    end loop;
    return p_free;
end;
$$;
