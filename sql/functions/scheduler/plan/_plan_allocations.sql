-- odc._plan_allocations: the allocations that protected jobs will get at their planned starts, on their pinned nodes.
-- They are in p_allocs like those of starts, with -1 as their mask and without job and time limit.
-- Arguments  p_allocs, p_points, p_protected  see ../README.md;  p_from  write those of protected jobs from this one on
create or replace function odc._plan_allocations(
    p_allocs bigint[], p_points bigint[], p_protected bigint[], p_from integer,
    p_node_groups integer[], p_group_gpus integer[], p_group_cpus integer[], p_group_mems integer[])
returns bigint[]
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_alloc integer;  v_group integer;
begin
    for v_entry in 10 * p_from - 10..cardinality(p_protected) - 1 by 10 loop
        v_alloc := p_protected[v_entry + 9];
        for v_point in p_protected[v_entry + 4]..p_protected[v_entry + 5] - 1 by 9 loop
            continue when p_points[v_point + 8] = 0;
            v_group := case when p_protected[v_entry + 1] < 0 then p_node_groups[p_points[v_point + 1]] end;
            p_allocs[v_alloc] := p_points[v_point + 1];
            p_allocs[v_alloc + 1] := -1;
            p_allocs[v_alloc + 2] := coalesce(p_group_gpus[v_group], p_protected[v_entry + 1]);
            p_allocs[v_alloc + 3] := coalesce(p_group_cpus[v_group], p_protected[v_entry + 2]);
            p_allocs[v_alloc + 4] := coalesce(p_group_mems[v_group], p_protected[v_entry + 3]);
            p_allocs[v_alloc + 5] := 0;  p_allocs[v_alloc + 6] := 0;  p_allocs[v_alloc + 7] := 0;  p_allocs[v_alloc + 8] := 2147483647;
            v_alloc := v_alloc + 9;
        end loop;
    end loop;
    return p_allocs;
end;
$$;
