-- odc._amounts: what is asked of a node or what it has, for people to read. Without GPUs or memory, it does not speak of them.
create or replace function odc._amounts(p_gpus integer, p_cpus integer, p_mem_mib integer)
returns text
language sql immutable as $$
    select case when p_gpus > 0 then p_gpus || case when p_gpus = 1 then ' GPU, ' else ' GPUs, ' end else '' end
           || p_cpus || case when p_cpus = 1 then ' CPU' else ' CPUs' end
           || case when p_mem_mib > 0 then format(' and %s MiB', p_mem_mib) else '' end
$$;
