-- odc._limits_open: the first moment from p_at on at which limits let a job start.
-- Arguments  p_windows  see _limit_windows
-- Returns    null: there is none
create or replace function odc._limits_open(p_windows bigint[], p_at bigint)
returns bigint
language plpgsql immutable set search_path = odc, pg_temp as $$
begin
    for i in 1..cardinality(p_windows) by 2 loop
        if p_windows[i + 1] >= p_at then
            return greatest(p_windows[i], p_at);
        end if;
    end loop;
    return null;
end;
$$;
