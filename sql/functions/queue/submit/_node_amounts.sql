-- odc._node_amounts: the CPUs and MiB of a job on each of its nodes. If no CPUs are requested, the job gets the share of
-- the node's CPUs that its GPUs make, rounded down, or else one per task. If no memory is requested, it gets its GPUs'
-- share, rounded down, or else the partition's or the node's share of its CPUs. The smallest value of the nodes that it
-- might run on counts.
-- Arguments  p_ask                   the job as submitted
--            p_partition_ids         where it may run
--            p_tasks, p_gpus         its tasks and GPUs on a node
--            p_node_gpus, p_node_cpus, p_node_mems  sizes of the nodes it might run on, parallel
create or replace function odc._node_amounts(
    p_ask jsonb, p_partition_ids integer[], p_tasks bigint, p_gpus bigint, p_node_gpus integer[], p_node_cpus integer[],
    p_node_mems integer[], out cpus bigint, out mem_mib bigint)
language plpgsql stable set search_path = odc, pg_temp as $$
#variable_conflict use_column
declare
    v_ask   record;
    v_share record;
    v_gpus  constant bigint := least(p_gpus, 2147483647);
    v_cpus  bigint;
begin
    select * into v_ask
      from jsonb_to_record(p_ask) as a (
           cpus_per_task bigint, cpus_per_gpu bigint, mem_per_node_mib bigint, mem_per_cpu_mib bigint, mem_per_gpu_mib bigint);
    -- The share of a node that its GPUs make: the smallest of the nodes that have enough GPUs.
    select min(n.cpus * p_gpus / n.gpus) as cpus, min(n.mem::bigint * p_gpus / n.gpus) as mem
      into v_share
      from unnest(p_node_gpus, p_node_cpus, p_node_mems) as n (gpus, cpus, mem)
     where p_gpus > 0 and n.gpus >= p_gpus;
    -- No node has 2^31 of anything; without these bounds the products could exceed bigint.
    v_cpus := least(2147483647, greatest(
        p_tasks * coalesce(v_ask.cpus_per_task, 1),
        case when v_ask.cpus_per_gpu is not null then v_ask.cpus_per_gpu * v_gpus
             when v_ask.cpus_per_task is null then v_share.cpus end));
    -- mem_mib / cpus is a node's own share per CPU; 0 MiB per node means all of the smallest node that fits.
    cpus := v_cpus;
    mem_mib := least(2147483647, coalesce(
        nullif(v_ask.mem_per_node_mib, 0),
        v_ask.mem_per_cpu_mib * v_cpus,
        v_ask.mem_per_gpu_mib * v_gpus,
        case when v_ask.mem_per_node_mib is null then coalesce(v_share.mem, v_cpus * (
            select min(p.def_mem_per_cpu_mib) from partition as p where p.id = any (p_partition_ids))) end,
        (select min(case when v_ask.mem_per_node_mib = 0 then n.mem else n.mem / n.cpus * v_cpus end)
           from unnest(p_node_gpus, p_node_cpus, p_node_mems) as n (gpus, cpus, mem)
          where n.gpus >= p_gpus and n.cpus >= v_cpus),
        0));
end;
$$;
