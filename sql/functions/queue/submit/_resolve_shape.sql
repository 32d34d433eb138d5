-- odc._resolve_shape: a job's request as a number of nodes, and as GPUs, CPUs and MiB on each of them. node_list: with at
-- least as many names as nodes, any of the named nodes.
-- Arguments  p_ask            the job as submitted
--            p_partition_ids  where it may run
-- Returns    the shape, with a null id
-- Raises     OD005 UnknownGpuType, OD007 UnknownNode, OD008 NeverFits, OD009 LimitExceeded, OD010 BadRequest,
--            OD016 NotImplementedYet, OD018 UnknownBooking, OD025 UnknownLicence
create or replace function odc._resolve_shape(p_ask jsonb, p_partition_ids integer[])
returns shape
language plpgsql stable set search_path = odc, pg_temp as $$
declare
    v_ask    record;
    v_shape  shape;
    v_counts record;
    v_nodes  record;
begin
    if jsonb_typeof(p_ask -> 'components') = 'array' then
        return _resolve_components(p_ask, p_partition_ids);
    end if;
    select * into v_ask
      from jsonb_to_record(p_ask) as a (
           cpus_per_gpu bigint, mem_per_node_mib bigint, mem_per_cpu_mib bigint, mem_per_gpu_mib bigint,
           switches integer, switches_wait_s integer);
    v_shape := _named_shape(p_ask, p_partition_ids);
    if num_nonnulls(v_ask.mem_per_node_mib, v_ask.mem_per_cpu_mib, v_ask.mem_per_gpu_mib) > 1 then
        raise exception using errcode = 'OD010',
            message = 'memory is requested in more than one way',
            hint = 'Use only one of --mem (per node), --mem-per-cpu and --mem-per-gpu.';
    end if;

    select array_agg(n.gpu_type) as types, array_agg(n.gpus) as gpus, array_agg(n.cpus) as cpus, array_agg(n.mem_mib) as mems,
           array_agg(n.partition_id) as partition_ids, array_agg(n.domain) as domains, array_agg(n.node_count) as counts
      into v_nodes
      from _possible_nodes(p_partition_ids, v_shape.gpu_type, v_shape.constraint_expr,
                           _listed_nodes(v_shape), v_shape.exclude_nodes, v_shape.tmp_per_node_mib) as n;
    if v_nodes.gpus is null then
        perform _refuse_no_nodes(v_shape);
    end if;
    select * into v_counts from _resolve_counts(p_ask, v_nodes.gpus, v_nodes.cpus, v_nodes.mems);
    if v_counts.node_count > cardinality(v_shape.node_list) then
        raise exception using errcode = 'OD016',
            message = format('the job needs %s nodes, but its node list names only %s',
                             v_counts.node_count, cardinality(v_shape.node_list)),
            hint = 'Name at least as many nodes as the job needs; it runs on any of them.';
    end if;
    perform _check_max_nodes(p_partition_ids, v_counts.node_count);
    if v_counts.gpus_per_node = 0 and (v_ask.cpus_per_gpu is not null or v_ask.mem_per_gpu_mib is not null) then
        raise exception using errcode = 'OD010',
            message = 'the job requests CPUs or memory per GPU, but no GPUs',
            hint = 'Request GPUs: --gpus, --gpus-per-node or --gres=gpu:N.';
    end if;

    select a.cpus, a.mem_mib into v_shape.cpus_per_node, v_shape.mem_per_node_mib
      from _node_amounts(p_ask, p_partition_ids, v_counts.tasks_per_node, v_counts.gpus_per_node,
                         v_nodes.gpus, v_nodes.cpus, v_nodes.mems) as a;
    v_shape.node_count := least(v_counts.node_count, 2147483647);
    v_shape.gpus_per_node := least(v_counts.gpus_per_node, 2147483647);
    if v_counts.node_count_max is not null then
        select nullif(least(v_counts.node_count_max, cardinality(v_shape.node_list), min(p.max_nodes)), v_shape.node_count)
          into v_shape.node_count_max
          from partition as p where p.id = any (p_partition_ids);
    end if;
    -- A request for as many blocks as nodes has no effect.
    if v_ask.switches < coalesce(v_shape.node_count_max, v_shape.node_count) then
        v_shape.switches := v_ask.switches;
        v_shape.switches_wait_s := nullif(coalesce(v_ask.switches_wait_s, 300), 2147483647);
    end if;
    perform _check_fits(v_shape, v_nodes.partition_ids, v_nodes.types, v_nodes.gpus, v_nodes.cpus, v_nodes.mems,
                        v_nodes.domains, v_nodes.counts);
    if v_shape.switches is not null and v_shape.switches_wait_s is null then
        perform _check_switches(v_shape);
    end if;
    return v_shape;
end;
$$;
