-- odc._forecast_protect: the start of a protected job of a forecast, by the time limits of the jobs that run before it.
-- Arguments  p_then  levels and jobs at the starts of protected jobs, in sections: of a row per node: its level; per group:
--                    whole nodes; per group: the level that its protected job needs; of three rows per protected job: the
--                    job, its start in seconds, how many more nodes fit it than it needs; last a value of _forecast_beside
--            p_holder, p_job, p_count  its number, the job, nodes;  p_from, p_to  its rows of p_alt_groups and p_needs
--            p_walk  see _forecast_next;  p_step, p_bits, p_ahead  the step now; see _forecast_ahead
--            p_free, p_nodes, p_fulls  see _forecast_lists
-- Returns    p_then with the new values of this job and its groups
create or replace function odc._forecast_protect(
    p_then integer[], p_holder integer, p_job integer, p_count integer, p_from integer, p_to integer, p_alt_groups integer[],
    p_needs integer[], p_walk integer[], p_step integer, p_bits integer, p_ahead integer[], p_free integer[], p_nodes integer[],
    p_fulls integer[])
returns integer[]
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_whole constant integer := cardinality(p_nodes);  v_need constant integer := v_whole + cardinality(p_fulls);
    v_record constant integer := v_need + cardinality(p_fulls) + 3 * p_holder - 2;
    v_first constant integer := 3 * v_whole - 63;  v_free_whole constant integer := 3 * v_whole + 64 * cardinality(p_fulls);
    v_late constant integer := 2 + ((34 - p_bits) << p_bits);
    v_late_any constant integer := 2 * v_late - 2 + ((34 - p_bits) << p_bits) / 32 + 2;
    v_at integer := p_step - 1;  v_fits integer := 0;  v_scale integer;  v_entry integer;
    v_group integer;  v_node integer;  v_level integer;  v_units integer;
begin
    p_then[v_record] := p_job;  p_then[v_record + 1] := 2147483647;
    if p_holder = 1 then
        p_then[1:v_whole] := p_free[1:v_whole];
    else
        for node in 1..v_whole loop
            if p_walk[8 + p_nodes[node]] = p_holder then
                p_then[node] := p_free[node];
            end if;
        end loop;
    end if;
    for i in p_from..p_to loop
        v_group := p_alt_groups[i];
        p_then[v_need + v_group] := p_needs[i];  p_then[v_whole + v_group] := p_free[v_free_whole + v_group];
        v_fits := v_fits + p_free[v_free_whole + v_group];
        for level in p_needs[i]..p_fulls[v_group] - 1 loop
            v_node := p_free[v_first + 64 * v_group + level];
            while v_node > 0 loop
                v_fits := v_fits + 1;  v_node := p_free[v_whole + v_node];
            end loop;
        end loop;
    end loop;

    while v_at < p_ahead[2] loop
        v_at := v_at + 1;
        if v_at & 31 = 0 and p_ahead[v_late_any + (v_at >> 5)] = 0 then
            v_at := v_at + 31;
            continue;
        end if;
        v_entry := p_ahead[v_late + v_at];
        continue when v_entry = 0;
        while v_entry > 0 loop
            v_group := p_ahead[v_entry];
            -- Unless it has ended already, or is a part of a limit.
            if v_group > 0 and p_walk[8 + v_group] = p_holder and p_ahead[v_entry + 5] > p_step then
                v_node := p_ahead[v_entry + 1];  v_units := p_ahead[v_entry + 2];
                if v_node = 0 then
                    p_then[v_whole + v_group] := p_then[v_whole + v_group] + v_units;  v_fits := v_fits + v_units;
                else
                    v_level := p_then[v_node];  p_then[v_node] := v_level + v_units;
                    v_fits := v_fits + (v_level < p_then[v_need + v_group] and v_level + v_units >= p_then[v_need + v_group])::integer;
                end if;
            end if;
            v_entry := p_ahead[v_entry + 4];
        end loop;
        if v_fits >= p_count then
            v_scale := greatest(0, (v_at >> p_bits) - 1);
            p_then[v_record + 1] := (v_at + 1 - (v_scale << p_bits)) << v_scale;
            exit;
        end if;
    end loop;
    p_then[v_record + 2] := v_fits - p_count;
    return p_then;
end;
$$;
