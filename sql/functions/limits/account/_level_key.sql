-- odc._level_key: a sibling's place in Fair Tree: used time over shares, ascending. Inlined.
-- Nothing used is 0, however few the shares; no shares and something used is infinite.
create or replace function odc._level_key(p_shares integer, p_used_ms bigint)
returns float8
language sql immutable as $$
    select case when p_used_ms = 0 then 0::float8 when p_shares = 0 then 'infinity'::float8
                else p_used_ms::float8 / p_shares end
$$;
