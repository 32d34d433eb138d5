-- odc._hang_nodes: the lists in which decide looks for nodes: by group and level (free GPUs; in groups without GPUs,
-- eighths of the CPUs, rounded up); within a list by number.
-- Arguments  per node: group, free GPUs and CPUs, jobs on it;  per group: GPUs and CPUs of a node
-- Returns    first: per list, at (group - 1) * 64 + level + 1, its first node; 0: none;  next, prev: per node; 0: none
--            filled: which lists have a node: per level a word for every 60 groups, a bit for each group
--            max_level: the highest level of a list;  per group: whole: nodes with all GPUs free; free_gpus, free_cpus;
--            idle: nodes without jobs
create or replace function odc._hang_nodes(
    p_groups integer[], p_gpus integer[], p_cpus integer[], p_jobs integer[],
    p_group_gpus integer[], p_group_cpus integer[],
    out first integer[], out next integer[], out prev integer[], out max_level integer,
    out filled bigint[], out whole integer[], out free_gpus bigint[], out free_cpus bigint[], out idle bigint[])
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_groups constant integer := greatest(1, coalesce(cardinality(p_group_gpus), 0));
    v_nodes constant integer := coalesce(cardinality(p_groups), 0);
    v_words constant integer := (v_groups + 59) / 60;
    gr integer;  y integer;  p integer;  w integer;
begin
    select greatest(coalesce(max(u), 0), 8) into max_level from unnest(p_group_gpus) as u;
    first := array_fill(0, array[v_groups * 64]);
    next := array_fill(0, array[greatest(1, v_nodes)]);  prev := next;
    whole := array_fill(0, array[v_groups]);  filled := array_fill(0::bigint, array[(max_level + 1) * v_words]);
    free_gpus := array_fill(0::bigint, array[v_groups]);  free_cpus := free_gpus;  idle := free_gpus;
    for x in reverse v_nodes..1 loop
        gr := p_groups[x];
        if p_group_gpus[gr] > 0 then
            y := (gr - 1) * 64 + p_gpus[x] + 1;
            if p_gpus[x] = p_group_gpus[gr] then
                whole[gr] := whole[gr] + 1;
            end if;
            free_gpus[gr] := free_gpus[gr] + p_gpus[x];
        else
            y := (gr - 1) * 64 + (8 * p_cpus[x] + p_group_cpus[gr] - 1) / p_group_cpus[gr] + 1;
        end if;
        free_cpus[gr] := free_cpus[gr] + p_cpus[x];
        if p_jobs[x] = 0 then
            idle[gr] := idle[gr] + 1;
        end if;
        p := first[y];
        if p > 0 then
            next[x] := p;  prev[p] := x;
        else
            w := (y - 1) % 64 * v_words + (gr + 59) / 60;
            filled[w] := filled[w] | (1::bigint << ((gr - 1) % 60));
        end if;
        first[y] := x;
    end loop;
end;
$$;
