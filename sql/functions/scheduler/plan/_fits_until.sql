-- odc._fits_until: until when a job could start on a node, from a moment at which its amounts are free there.
-- Arguments  p_points, p_node   see _booking_points;  p_at  the moment
--            p_gpus … p_mem     amounts (p_gpus -1: all of the node);  p_limit_us  time limit;  p_booking  as for _earliest_start
-- Returns    -1: it cannot start at p_at
create or replace function odc._fits_until(
    p_points bigint[], p_node integer, p_at bigint, p_gpus integer, p_cpus integer, p_mem integer, p_limit_us bigint, p_booking integer)
returns bigint
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_until bigint := 9000000000000000000;
    v_inside boolean := p_booking is null;
    v_point integer := p_points[p_node];  v_holder integer;
begin
    while v_point > 0 loop
        v_holder := p_points[v_point + 2];
        if v_holder = -p_booking then
            if p_points[v_point + 3] <= p_at and p_points[v_point + 4] - p_limit_us >= p_at then
                v_inside := true;  v_until := least(v_until, p_points[v_point + 4] - p_limit_us);
            end if;
        elsif v_holder < 0 then
            if p_points[v_point + 4] > p_at then
                v_until := least(v_until, p_points[v_point + 3] - p_limit_us);
            end if;
        elsif p_points[v_point + 8] = 1 and p_points[v_point + 3] > p_at
              and (p_gpus < 0 or p_points[v_point + 5] < p_gpus or p_points[v_point + 6] < p_cpus or p_points[v_point + 7] < p_mem) then
            v_until := least(v_until, p_points[v_point + 3] - p_limit_us);
        end if;
        v_point := p_points[v_point];
    end loop;
    return case when v_inside and v_until >= p_at then v_until else -1 end;
end;
$$;
