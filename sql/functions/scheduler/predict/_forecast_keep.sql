-- odc._forecast_keep: keep what a job that waits needs of its limits from the jobs behind it.
-- Arguments  p_walk, p_uses, p_from, p_to  see _forecast_next;  p_limits_at  the position in p_walk before its part of limits
create or replace function odc._forecast_keep(p_walk integer[], p_limits_at integer, p_uses integer[], p_from integer, p_to integer)
returns integer[]
language plpgsql immutable set search_path = odc, pg_temp as $$
begin
    for i in p_from..p_to by 3 loop
        p_walk[p_limits_at - p_uses[i]] := least(1000000000, p_walk[p_limits_at - p_uses[i]] + p_uses[i + 2]);
    end loop;
    return p_walk;
end;
$$;
