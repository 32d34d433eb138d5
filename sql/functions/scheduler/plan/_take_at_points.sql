-- odc._take_at_points: take what a job that starts now was allocated at the points before its end.
-- Arguments  p_points  see _booking_points;  p_allocs  see _allocate_nodes; those after p_from are taken;  p_limit_us  its end
create or replace function odc._take_at_points(p_points bigint[], p_allocs bigint[], p_from integer, p_limit_us bigint)
returns bigint[]
language plpgsql immutable set search_path = odc, pg_temp as $$
begin
    for v_at in p_from..cardinality(p_allocs) - 1 by 9 loop
        if p_points[p_allocs[v_at + 1]] > 0 then
            p_points := _add_at_points(p_points, p_allocs[v_at + 1]::integer, 0, p_limit_us,
                                       -p_allocs[v_at + 3], -p_allocs[v_at + 4], -p_allocs[v_at + 5]);
        end if;
    end loop;
    return p_points;
end;
$$;
