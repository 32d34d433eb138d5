-- odc._add_at_points: add amounts to those free on a node, at each of its points within a span of time.
-- Arguments  p_points  see _booking_points;  p_from, p_to  microseconds from the pass's time; p_to is not in the span
-- Returns    the points. Negative amounts are taken
create or replace function odc._add_at_points(
    p_points bigint[], p_node integer, p_from bigint, p_to bigint, p_gpus bigint, p_cpus bigint, p_mem bigint)
returns bigint[]
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_point integer := p_points[p_node];
begin
    while v_point > 0 loop
        if p_points[v_point + 3] >= p_from and p_points[v_point + 3] < p_to then
            p_points[v_point + 5] := p_points[v_point + 5] + p_gpus;
            p_points[v_point + 6] := p_points[v_point + 6] + p_cpus;
            p_points[v_point + 7] := p_points[v_point + 7] + p_mem;
        end if;
        v_point := p_points[v_point];
    end loop;
    return p_points;
end;
$$;
