-- odc._run_unit: the seconds that a part of 1,000,000 stands for: the time limit, or 30 days if there is none.
create or replace function odc._run_unit(p_limit_s integer)
returns bigint
language sql immutable as $$
    select case when p_limit_s = 2147483647 then 2592000 else greatest(p_limit_s, 1) end::bigint
$$;
