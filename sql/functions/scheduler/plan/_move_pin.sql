-- odc._move_pin: move a protected job's pin from one of its points to a spare point of the same job.
-- Arguments  p_pin, p_spare  the two points;  p_gpus, p_cpus, p_mem  the job's amounts per node (p_gpus -1: all of it)
--            p_node_groups  per node;  p_group_*  per group
-- Returns    the points: the amounts are free again on the old node, and taken on the new one, while the job runs
create or replace function odc._move_pin(
    p_points bigint[], p_pin integer, p_spare integer, p_gpus bigint, p_cpus bigint, p_mem bigint,
    p_node_groups integer[], p_group_gpus integer[], p_group_cpus integer[], p_group_mems integer[])
returns bigint[]
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_old constant integer := p_points[p_pin + 1];
    v_new constant integer := p_points[p_spare + 1];
    v_group integer;
begin
    p_points[p_spare + 8] := 1;
    p_points[p_pin + 8] := 0;
    v_group := case when p_gpus < 0 then p_node_groups[v_new] end;
    p_points := _add_at_points(
        p_points, v_new, p_points[p_spare + 3], p_points[p_spare + 4],
        -coalesce(p_group_gpus[v_group], p_gpus), -coalesce(p_group_cpus[v_group], p_cpus), -coalesce(p_group_mems[v_group], p_mem));
    v_group := case when p_gpus < 0 then p_node_groups[v_old] end;
    return _add_at_points(
        p_points, v_old, p_points[p_pin + 3], p_points[p_pin + 4],
        coalesce(p_group_gpus[v_group], p_gpus), coalesce(p_group_cpus[v_group], p_cpus), coalesce(p_group_mems[v_group], p_mem));
end;
$$;
