-- odc._fits_beside_points: whether a job that would start now on a node avoids every point that it would run into.
-- A pin that is in its way moves to a spare node, if there is one.
-- Arguments  p_points, p_protected  see _booking_points and ../README.md
--            p_tried        per protected job: where this search goes on with its spare points; null: at the first
--            p_gpus, p_cpus, p_mem, p_exclusive  what the job takes of the node;  p_limit_us  its time limit, microseconds
--            p_booking      it runs inside this booking; null: outside of all
--            p_picks, p_found_before  nodes that it is about to take
-- Returns    blocked_at: the first point in its way; far: none; null: the node is not in its booking
--            points, protected: if they changed, else null;  tried
create or replace function odc._fits_beside_points(
    p_points bigint[], p_protected bigint[], p_tried integer[], p_node integer,
    p_gpus integer, p_cpus integer, p_mem integer, p_exclusive boolean, p_limit_us bigint, p_booking integer,
    p_picks integer[], p_found_before integer[],
    p_node_groups integer[], p_group_gpus integer[], p_group_cpus integer[], p_group_mems integer[],
    out blocked_at bigint, out points bigint[], out protected bigint[], out tried integer[])
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_inside boolean := p_booking is null;  v_moved boolean := false;  v_advanced boolean := false;
    v_point integer := p_points[p_node];  v_holder integer;  v_at bigint;  v_spare integer[];
begin
    blocked_at := 8000000000000000000;  tried := p_tried;
    while v_point > 0 loop
        v_holder := p_points[v_point + 2];  v_at := p_points[v_point + 3];
        if v_holder = -p_booking then
            if v_at = 0 then
                v_inside := true;
                blocked_at := least(blocked_at, case when p_points[v_point + 4] < p_limit_us then p_points[v_point + 4] end);
            end if;
        elsif v_at < p_limit_us and v_holder < 0 then
            blocked_at := least(blocked_at, v_at);
        elsif v_at < p_limit_us and p_points[v_point + 8] = 1
              and (p_exclusive or p_points[v_point + 5] < p_gpus or p_points[v_point + 6] < p_cpus or p_points[v_point + 7] < p_mem) then
            v_spare := _find_spare(p_points, p_protected, v_holder, coalesce(tried[v_holder], p_protected[10 * v_holder - 4]::integer),
                                   p_picks, p_found_before, p_node_groups, p_group_gpus, p_group_cpus, p_group_mems);
            tried[v_holder] := v_spare[2];
            if v_spare[3] <> p_protected[10 * v_holder - 4] then
                p_protected[10 * v_holder - 4] := v_spare[3];  v_advanced := true;
            end if;
            if v_spare[1] > 0 then
                p_points := _move_pin(p_points, v_point, v_spare[1], p_protected[10 * v_holder - 9], p_protected[10 * v_holder - 8],
                                      p_protected[10 * v_holder - 7], p_node_groups, p_group_gpus, p_group_cpus, p_group_mems);
                v_moved := true;
            else
                blocked_at := least(blocked_at, v_at);
            end if;
        end if;
        v_point := p_points[v_point];
    end loop;
    blocked_at := case when v_inside then blocked_at end;
    points := case when v_moved then p_points end;
    protected := case when v_advanced then p_protected end;
end;
$$;
