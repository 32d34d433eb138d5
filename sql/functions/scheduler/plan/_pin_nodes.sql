-- odc._pin_nodes: add the points of the job that is the last protected one, on all nodes that fit at its planned start.
-- The nodes that became free last are pinned: their amounts are taken while the job runs. The others are spare.
-- Arguments  p_points, p_protected  see _booking_points and ../README.md
--            p_fit, p_then_*  the nodes in the order in which they became free, and the amounts free on them at its start
create or replace function odc._pin_nodes(
    p_points bigint[], p_protected bigint[], p_fit integer[],
    p_then_gpus integer[], p_then_cpus integer[], p_then_mems integer[],
    p_node_groups integer[], p_group_gpus integer[], p_group_cpus integer[], p_group_mems integer[])
returns bigint[]
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_last constant integer := cardinality(p_protected) / 10;
    v_gpus constant integer := p_protected[10 * v_last - 9];  v_cpus constant integer := p_protected[10 * v_last - 8];
    v_mem constant integer := p_protected[10 * v_last - 7];
    v_at constant bigint := p_protected[10 * v_last - 3];  v_end constant bigint := p_protected[10 * v_last - 2];
    v_spares constant integer := cardinality(p_fit) - p_protected[10 * v_last];
    v_point integer := cardinality(p_points) + 1;
    v_node integer;  v_group integer;
begin
    for i in 1..cardinality(p_fit) loop
        v_node := p_fit[i];
        p_points[v_point] := p_points[v_node];  p_points[v_point + 1] := v_node;  p_points[v_point + 2] := v_last;
        p_points[v_point + 3] := v_at;  p_points[v_point + 4] := v_end;
        p_points[v_point + 5] := p_then_gpus[i];  p_points[v_point + 6] := p_then_cpus[i];  p_points[v_point + 7] := p_then_mems[i];
        p_points[v_point + 8] := (i > v_spares)::integer;
        p_points[v_node] := v_point;
        v_point := v_point + 9;
        if i > v_spares then
            v_group := case when v_gpus < 0 then p_node_groups[v_node] end;
            p_points := _add_at_points(p_points, v_node, v_at, v_end, -coalesce(p_group_gpus[v_group], v_gpus),
                                       -coalesce(p_group_cpus[v_group], v_cpus), -coalesce(p_group_mems[v_group], v_mem));
        end if;
    end loop;
    return p_points;
end;
$$;
