-- odc._forecast_use: take from what is left of limits.
-- Arguments  p_free  see _forecast_lists: at its end, in reverse order, what is left of each limit;  p_uses  see _forecast_limits
create or replace function odc._forecast_use(p_free integer[], p_uses integer[])
returns integer[]
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_place integer;
begin
    for i in 1..cardinality(p_uses) by 3 loop
        v_place := cardinality(p_free) + 1 + p_uses[i];
        p_free[v_place] := p_free[v_place] - p_uses[i + 2];
    end loop;
    return p_free;
end;
$$;
