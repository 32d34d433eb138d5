-- odc._pin_nodes: add the points of a job that is now protected, on all nodes that fit at its planned start.
-- The nodes that became free last are pinned: their amounts are taken while the job runs. The others are spare.
-- Arguments  p_points  see _booking_points;  p_head, p_at, p_end  the job's number, planned start and end
--            p_fit, p_then_*  the nodes in the order in which they became free, and the amounts free on them at p_at
--            p_count … p_mem  nodes, amounts of one member (p_gpus -1: all of the node)
create or replace function odc._pin_nodes(
    p_points bigint[], p_head integer, p_at bigint, p_end bigint, p_fit integer[],
    p_then_gpus integer[], p_then_cpus integer[], p_then_mems integer[],
    p_count integer, p_gpus integer, p_cpus integer, p_mem integer,
    p_node_groups integer[], p_group_gpus integer[], p_group_cpus integer[], p_group_mems integer[])
returns bigint[]
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_spares constant integer := cardinality(p_fit) - p_count;
    v_point integer := cardinality(p_points) + 1;
    v_node integer;  v_group integer;
begin
    for i in 1..cardinality(p_fit) loop
        v_node := p_fit[i];
        p_points[v_point] := p_points[v_node];  p_points[v_point + 1] := v_node;  p_points[v_point + 2] := p_head;
        p_points[v_point + 3] := p_at;  p_points[v_point + 4] := p_end;
        p_points[v_point + 5] := p_then_gpus[i];  p_points[v_point + 6] := p_then_cpus[i];  p_points[v_point + 7] := p_then_mems[i];
        p_points[v_point + 8] := (i > v_spares)::integer;
        p_points[v_node] := v_point;
        v_point := v_point + 9;
        if i > v_spares then
            v_group := case when p_gpus < 0 then p_node_groups[v_node] end;
            p_points := _add_at_points(p_points, v_node, p_at, p_end, -coalesce(p_group_gpus[v_group], p_gpus),
                                       -coalesce(p_group_cpus[v_group], p_cpus), -coalesce(p_group_mems[v_group], p_mem));
        end if;
    end loop;
    return p_points;
end;
$$;
