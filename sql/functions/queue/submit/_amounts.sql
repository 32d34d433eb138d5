-- odc._amounts: requested or available amounts of a node in words. Amounts that are null or 0 are left out.
create or replace function odc._amounts(p_gpus integer, p_cpus integer, p_mem_mib integer)
returns text
language sql immutable as $$
    select concat_ws(' and ',
        concat_ws(', ',
            case when p_gpus > 0 then p_gpus || case when p_gpus = 1 then ' GPU' else ' GPUs' end end,
            case when p_cpus > 0 then p_cpus || case when p_cpus = 1 then ' CPU' else ' CPUs' end end),
        case when p_mem_mib > 0 then odc._mib(p_mem_mib) || ' of memory' end)
$$;
