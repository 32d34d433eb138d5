-- odc._forecast_ahead: the releases of running jobs, as one array that the forecast changes in place. Each is in two lists: of
-- the step of its predicted end, and of the step in which its limit ends.
-- Arguments  per release, see _forecast_running: p_groups, p_nodes, p_units, p_end_s, p_late_s (null: there are none)
--            p_bits  a step is 1 / 2^bits of the distance
-- Returns    first the last step with a predicted end, and the last with the end of a limit; then sections, of a row per step:
--            the first release of both lists (a position of this array; 0: none); of a row per 32 steps: whether one of them
--            was ever used, for both lists; then six values per release: group, node, units, the next of both lists, the step
--            of its end
create or replace function odc._forecast_ahead(
    p_groups integer[], p_nodes integer[], p_units integer[], p_end_s integer[], p_late_s integer[], p_bits integer)
returns integer[]
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_powers constant integer[] := (select array_agg(1 << i order by i) from generate_series(0, 29) as i);
    v_steps constant integer := (34 - p_bits) << p_bits;
    v_late constant integer := 2 + v_steps;  v_end_any constant integer := 2 + 2 * v_steps;
    v_late_any constant integer := v_end_any + v_steps / 32 + 1;  v_first constant integer := v_late_any + v_steps / 32 + 1;
    v_ahead integer[] := array_fill(0, array[v_first + 6 * cardinality(p_nodes)]);
    v_step integer;  v_entry integer;
begin
    for i in reverse cardinality(p_nodes)..1 loop
        v_entry := v_first + 6 * i - 5;
        v_ahead[v_entry] := p_groups[i];  v_ahead[v_entry + 1] := p_nodes[i];  v_ahead[v_entry + 2] := p_units[i];
        v_step := _forecast_step(p_end_s[i], p_bits, v_powers);
        v_ahead[v_entry + 3] := v_ahead[2 + v_step];  v_ahead[2 + v_step] := v_entry;  v_ahead[v_entry + 5] := v_step;
        v_ahead[v_end_any + (v_step >> 5) + 1] := 1;  v_ahead[1] := greatest(v_ahead[1], v_step);
        v_step := _forecast_step(p_late_s[i], p_bits, v_powers);
        v_ahead[v_entry + 4] := v_ahead[v_late + v_step];  v_ahead[v_late + v_step] := v_entry;
        v_ahead[v_late_any + (v_step >> 5) + 1] := 1;  v_ahead[2] := greatest(v_ahead[2], v_step);
    end loop;
    return v_ahead;
end;
$$;
