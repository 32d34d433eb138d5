-- odc._forecast_add: add the releases of a job that starts.
-- Arguments  p_ahead, p_bits  see _forecast_ahead;  p_picks  see _forecast_gang;  p_end, p_late  the steps in which it ends as
--            predicted, and in which its limit ends
create or replace function odc._forecast_add(p_ahead integer[], p_bits integer, p_picks integer[], p_end integer, p_late integer)
returns integer[]
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_steps constant integer := (34 - p_bits) << p_bits;
    v_end_any constant integer := 3 + 2 * v_steps + (p_end >> 5);
    v_late_any constant integer := 4 + 2 * v_steps + v_steps / 32 + (p_late >> 5);
    v_entry integer := cardinality(p_ahead) + 1;
begin
    p_ahead[v_end_any] := 1;  p_ahead[v_late_any] := 1;
    p_ahead[1] := greatest(p_ahead[1], p_end);  p_ahead[2] := greatest(p_ahead[2], p_late);
    for pick in 1..cardinality(p_picks) by 3 loop
        p_ahead[v_entry] := p_picks[pick];  p_ahead[v_entry + 1] := abs(p_picks[pick + 1]);  p_ahead[v_entry + 2] := p_picks[pick + 2];
        p_ahead[v_entry + 3] := p_ahead[2 + p_end];  p_ahead[2 + p_end] := v_entry;
        p_ahead[v_entry + 4] := p_ahead[2 + v_steps + p_late];  p_ahead[2 + v_steps + p_late] := v_entry;
        p_ahead[v_entry + 5] := p_end;
        v_entry := v_entry + 6;
    end loop;
    return p_ahead;
end;
$$;
