-- odc._mib: an amount of memory or disk space as users write it, in the shortest exact form: 64G, 1536M, 2T, 0.
create or replace function odc._mib(p_mib bigint)
returns text
language sql immutable as $$
    select case when p_mib = 0 then '0'
                when p_mib % 1048576 = 0 then p_mib / 1048576 || 'T'
                when p_mib % 1024 = 0 then p_mib / 1024 || 'G'
                else p_mib || 'M' end
$$;
