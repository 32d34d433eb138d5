-- odc._free_level: the list in which a node is: its free GPUs; without GPUs, eighths of its CPUs, rounded up. Inlined.
create or replace function odc._free_level(p_gpus bigint, p_cpus bigint, p_group_gpus integer, p_group_cpus integer)
returns bigint
language sql immutable as $$
    select case when p_group_gpus > 0 then p_gpus else (8 * p_cpus + p_group_cpus - 1) / p_group_cpus end
$$;
