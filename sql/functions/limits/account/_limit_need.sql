-- odc._limit_need: the amount of a limit that one job uses, in the unit of the limit. Inlined.
-- Arguments  p_limit_s  the job's time limit, 2147483647 for none: more GPU-minutes than any limit has
-- Returns    jobs, GPUs, CPUs, nodes, seconds; of GPU-minutes, milliseconds times the QOS's usage factor
create or replace function odc._limit_need(
    p_what text, p_nodes bigint, p_gpus bigint, p_cpus bigint, p_limit_s integer, p_usage_factor numeric)
returns bigint
language sql immutable as $$
    select case p_what when 'gpus' then p_gpus when 'cpus' then p_cpus when 'nodes' then p_nodes
                       when 'wall_s' then p_limit_s
                       when 'gpu_minutes' then case when p_gpus = 0 then 0
                                                    when p_limit_s = 2147483647 then 9000000000000000000
                                                    else (p_gpus * p_limit_s * 1000 * p_usage_factor)::bigint end
                       else 1 end
$$;
