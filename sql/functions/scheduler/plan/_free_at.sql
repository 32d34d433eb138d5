-- odc._free_at: what will be free at a moment, given the releases and this pass's own changes up to then.
-- Arguments  p_at  microseconds from the pass's time;  p_nodes  number of nodes;  the others  as for _earliest_start
-- Returns    p_free with the amounts of that moment; its lists stay as they are
create or replace function odc._free_at(
    p_free bigint[], p_at bigint, p_nodes integer,
    p_release_ats bigint[], p_release_nodes integer[], p_release_gpus integer[], p_release_cpus integer[], p_release_mems integer[],
    p_change_ats bigint[], p_change_froms integer[], p_change_counts integer[], p_allocs bigint[])
returns bigint[]
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_cpus constant integer := 2 * p_nodes;  v_mem constant integer := 3 * p_nodes;
    v_next integer := 1;  v_node integer;  v_from integer;  v_sign integer;
begin
    while p_release_ats[v_next] <= p_at loop
        v_node := p_release_nodes[v_next];
        p_free[p_nodes + v_node] := p_free[p_nodes + v_node] + p_release_gpus[v_next];
        p_free[v_cpus + v_node] := p_free[v_cpus + v_node] + p_release_cpus[v_next];
        p_free[v_mem + v_node] := p_free[v_mem + v_node] + p_release_mems[v_next];
        v_next := v_next + 1;
    end loop;
    v_next := 1;
    while p_change_ats[v_next] <= p_at loop
        v_from := abs(p_change_froms[v_next]);  v_sign := sign(p_change_froms[v_next]);
        for v_alloc in v_from..v_from + 9 * p_change_counts[v_next] - 1 by 9 loop
            v_node := p_allocs[v_alloc];
            p_free[p_nodes + v_node] := p_free[p_nodes + v_node] + v_sign * p_allocs[v_alloc + 2];
            p_free[v_cpus + v_node] := p_free[v_cpus + v_node] + v_sign * p_allocs[v_alloc + 3];
            p_free[v_mem + v_node] := p_free[v_mem + v_node] + v_sign * p_allocs[v_alloc + 4];
        end loop;
        v_next := v_next + 1;
    end loop;
    return p_free;
end;
$$;
