-- odc._level_key: a sibling's sort key in Fair Tree: usage divided by shares, ascending. Inlined.
-- 0 if nothing was used, however few the shares; infinite for usage without shares.
create or replace function odc._level_key(p_shares integer, p_used_ms bigint)
returns float8
language sql immutable as $$
    select case when p_used_ms = 0 then 0::float8 when p_shares = 0 then 'infinity'::float8
                else p_used_ms::float8 / p_shares end
$$;
