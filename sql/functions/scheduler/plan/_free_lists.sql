-- odc._free_lists: what is free, as one array that a pass changes in place, and the lists in which it looks for nodes.
-- A list has the nodes of one group and level (see _free_level), first those with low numbers. ../README.md has a picture.
-- Arguments  per node: group, free amounts, jobs on it;  per group: GPUs and CPUs of a node
--            p_max_level  the highest level of a list
--            p_list_full      also list nodes with GPUs that have none left: only jobs without GPUs use them
-- Returns    sections, of a row per node: mask, GPUs, CPUs, MiB, jobs, next node of its list, previous node (0:
--            none); of 64 rows per group: first node of each level; of a row per group: nodes with all GPUs free, nodes
--            without jobs, free GPUs, free CPUs; of a word of 60 groups per level: a bit for each list that has nodes
create or replace function odc._free_lists(
    p_groups integer[], p_masks bigint[], p_gpus integer[], p_cpus integer[], p_mems integer[], p_jobs integer[],
    p_group_gpus integer[], p_group_cpus integer[], p_max_level integer, p_list_full boolean)
returns bigint[]
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_nodes constant integer := coalesce(cardinality(p_groups), 0);
    v_groups constant integer := greatest(1, coalesce(cardinality(p_group_gpus), 0));
    v_words constant integer := (v_groups + 59) / 60;
    v_next constant integer := 5 * v_nodes;  v_prev constant integer := 6 * v_nodes;
    v_lists constant integer := 7 * v_nodes;  v_whole_at constant integer := v_lists + 64 * v_groups;
    v_idle constant integer := v_whole_at + v_groups;  v_free_gpus constant integer := v_idle + v_groups;
    v_free_cpus constant integer := v_free_gpus + v_groups;  v_filled constant integer := v_free_cpus + v_groups;
    v_free bigint[];  v_group integer;  v_level integer;  v_list integer;  v_first integer;  v_word integer;
begin
    v_free := p_masks || p_gpus::bigint[] || p_cpus::bigint[] || p_mems::bigint[] || p_jobs::bigint[]
            || array_fill(0::bigint, array[2 * v_nodes + 68 * v_groups + (p_max_level + 1) * v_words]);
    for node in reverse v_nodes..1 loop
        continue when p_gpus[node] = 0 and not p_list_full and p_jobs[node] > 0 and p_group_gpus[p_groups[node]] > 0;
        v_group := p_groups[node];
        v_level := _free_level(p_gpus[node], p_cpus[node], p_group_gpus[v_group], p_group_cpus[v_group]);
        if p_gpus[node] > 0 then
            v_free[v_free_gpus + v_group] := v_free[v_free_gpus + v_group] + p_gpus[node];
            if p_gpus[node] = p_group_gpus[v_group] then
                v_free[v_whole_at + v_group] := v_free[v_whole_at + v_group] + 1;
            end if;
        end if;
        v_free[v_free_cpus + v_group] := v_free[v_free_cpus + v_group] + p_cpus[node];
        if p_jobs[node] = 0 then
            v_free[v_idle + v_group] := v_free[v_idle + v_group] + 1;
        end if;
        v_list := v_lists + (v_group - 1) * 64 + v_level + 1;
        v_first := v_free[v_list];
        if v_first > 0 then
            v_free[v_next + node] := v_first;  v_free[v_prev + v_first] := node;
        else
            v_word := v_filled + v_level * v_words + (v_group + 59) / 60;
            v_free[v_word] := v_free[v_word] | (1::bigint << ((v_group - 1) % 60));
        end if;
        v_free[v_list] := node;
    end loop;
    return v_free;
end;
$$;
