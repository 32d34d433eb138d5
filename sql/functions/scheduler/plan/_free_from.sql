-- odc._free_from: a step of _earliest_start over all releases and changes up to a moment at once.
-- Arguments  p_until  the moment;  p_usable  per group: the job may use it;  the others  as for _earliest_start
-- Returns    free: p_free with the amounts of that moment;  touched: nodes that may have come to fit, or no longer fit
--            release, change: the first ones after it
create or replace function odc._free_from(
    p_free bigint[], p_until bigint, p_usable boolean[], p_allow boolean[], p_node_groups integer[], p_gpus integer, p_cpus integer,
    p_mem integer, p_release_ats bigint[], p_release_nodes integer[], p_release_gpus integer[], p_release_cpus integer[],
    p_release_mems integer[], p_change_ats bigint[], p_change_froms integer[], p_change_counts integer[], p_allocs bigint[],
    out free bigint[], out touched integer[], out release integer, out change integer)
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_nodes constant integer := cardinality(p_node_groups);
    v_cpus constant integer := 2 * v_nodes;  v_mem constant integer := 3 * v_nodes;
    v_marks boolean[] := array_fill(false, array[v_nodes]);     -- nodes in touched
    v_touches integer := 0;  v_node integer;  v_from integer;  v_sign integer;
begin
    touched := '{}';  release := 1;  change := 1;
    while p_release_ats[release] <= p_until loop
        v_node := p_release_nodes[release];
        if p_usable[p_node_groups[v_node]] then
            p_free[v_nodes + v_node] := p_free[v_nodes + v_node] + p_release_gpus[release];
            p_free[v_cpus + v_node] := p_free[v_cpus + v_node] + p_release_cpus[release];
            p_free[v_mem + v_node] := p_free[v_mem + v_node] + p_release_mems[release];
            if not v_marks[v_node] and p_free[v_nodes + v_node] >= p_gpus and p_free[v_cpus + v_node] >= p_cpus
               and p_free[v_mem + v_node] >= p_mem and (p_allow is null or p_allow[v_node]) then
                v_marks[v_node] := true;  v_touches := v_touches + 1;  touched[v_touches] := v_node;
            end if;
        end if;
        release := release + 1;
    end loop;
    while p_change_ats[change] <= p_until loop
        v_from := abs(p_change_froms[change]);  v_sign := sign(p_change_froms[change]);
        for v_alloc in v_from..v_from + 9 * p_change_counts[change] - 1 by 9 loop
            v_node := p_allocs[v_alloc];
            if p_usable[p_node_groups[v_node]] then
                p_free[v_nodes + v_node] := p_free[v_nodes + v_node] + v_sign * p_allocs[v_alloc + 2];
                p_free[v_cpus + v_node] := p_free[v_cpus + v_node] + v_sign * p_allocs[v_alloc + 3];
                p_free[v_mem + v_node] := p_free[v_mem + v_node] + v_sign * p_allocs[v_alloc + 4];
                if not v_marks[v_node] and (p_allow is null or p_allow[v_node]) then
                    v_marks[v_node] := true;  v_touches := v_touches + 1;  touched[v_touches] := v_node;
                end if;
            end if;
        end loop;
        change := change + 1;
    end loop;
    free := p_free;
end;
$$;
