-- odc._find_spare: the next spare node to which a pin of a protected job may move: one that fits as well at that time.
-- A search tries each spare node once. Spare nodes without room are not tried by later searches either.
-- Arguments  p_points, p_protected  see _booking_points and ../README.md;  p_holder  the protected job
--            p_from         the first of its points to try
--            p_picks, p_found_before  nodes that the job at hand is about to take. It may not take them in the end, so they
--                           remain to be tried by later searches
-- Returns    three points: the spare one (0: there is none); where this search goes on; where later searches begin
create or replace function odc._find_spare(
    p_points bigint[], p_protected bigint[], p_holder integer, p_from integer, p_picks integer[], p_found_before integer[],
    p_node_groups integer[], p_group_gpus integer[], p_group_cpus integer[], p_group_mems integer[])
returns integer[]
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_end constant integer := p_protected[10 * p_holder - 5];
    v_next integer := p_protected[10 * p_holder - 4];
    v_gpus bigint := p_protected[10 * p_holder - 9];  v_cpus bigint := p_protected[10 * p_holder - 8];
    v_mem bigint := p_protected[10 * p_holder - 7];
    v_takes_all constant boolean := v_gpus < 0;
    v_spare integer := 0;  v_point integer := p_from;  v_node integer;  v_other integer;  v_group integer;  v_room boolean;
begin
    while v_spare = 0 and v_point < v_end loop
        v_node := p_points[v_point + 1];
        if v_takes_all then
            v_group := p_node_groups[v_node];
            v_gpus := p_group_gpus[v_group];  v_cpus := p_group_cpus[v_group];  v_mem := p_group_mems[v_group];
        end if;
        v_room := p_points[v_point + 8] = 0 and p_points[v_point + 5] >= v_gpus and p_points[v_point + 6] >= v_cpus
                  and p_points[v_point + 7] >= v_mem;
        v_other := p_points[v_node];
        while v_room and v_other > 0 loop
            v_room := p_points[v_other + 3] < p_points[v_point + 3] or p_points[v_other + 3] >= p_points[v_point + 4]
                      or p_points[v_other + 8] = 0
                      or (p_points[v_other + 2] > 0 and p_points[v_other + 5] >= v_gpus and p_points[v_other + 6] >= v_cpus
                          and p_points[v_other + 7] >= v_mem);
            v_other := p_points[v_other];
        end loop;
        if v_room and (v_node = any (p_picks) or v_node = any (p_found_before)) then
            v_room := false;
        elsif v_next = v_point then
            v_next := v_point + 9;
        end if;
        if v_room then
            v_spare := v_point;
        end if;
        v_point := v_point + 9;
    end loop;
    return array[v_spare, v_point, v_next];
end;
$$;
