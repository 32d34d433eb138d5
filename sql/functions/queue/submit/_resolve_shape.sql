-- odc._resolve_shape: a job's request as a number of nodes, and as GPUs, CPUs and MiB on each of them. If no CPUs are
-- requested, the job gets the share of the node's CPUs that its GPUs make, rounded down, or else one per task. If no
-- memory is requested, it gets its GPUs' share, rounded down, or else the partition's or the node's share of its CPUs.
-- The smallest value of the nodes that it might run on counts. node_list: with at least as many names as nodes, any of
-- the named nodes.
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
    v_share  record;
    v_gpus   bigint;
    v_cpus   bigint;
    v_mem    bigint;
    v_listed text[];
begin
    select * into v_ask
      from jsonb_to_record(p_ask) as a (
           cpus_per_task bigint, cpus_per_gpu bigint, mem_per_node_mib bigint, mem_per_cpu_mib bigint,
           mem_per_gpu_mib bigint, exclusive boolean, "constraint" text, node_list text[], exclude_nodes text[],
           gpu_type text, switches integer, switches_wait_s integer, booking text, licences jsonb);
    v_shape.partition_ids := p_partition_ids;
    v_shape.gpu_type := v_ask.gpu_type;
    v_shape.exclusive := coalesce(v_ask.exclusive, false);
    v_shape.constraint_expr := nullif(regexp_replace(v_ask.constraint, '\s', '', 'g'), '');
    if v_ask.node_list is not null or v_ask.exclude_nodes is not null then
        v_shape.node_list := nullif(array(select distinct n from unnest(v_ask.node_list) as n order by n), '{}');
        v_shape.exclude_nodes := nullif(array(select distinct n from unnest(v_ask.exclude_nodes) as n order by n), '{}');
    end if;
    v_shape.licences := nullif(v_ask.licences, '{}');
    if v_shape.licences is not null then
        perform _check_licences(v_shape.licences);
    end if;
    if v_ask.booking is not null then
        v_shape.booking_id := (select b.id from booking as b
                                where b.name = v_ask.booking and b.state in ('PLANNED', 'ACTIVE'));
        if v_shape.booking_id is null then
            perform _refuse_no_booking(v_ask.booking, null);
        end if;
    end if;
    if v_shape.gpu_type is not null then
        perform _check_gpu_type(v_shape.gpu_type);
    end if;
    if v_shape.constraint_expr is not null then
        perform _check_constraint(v_shape.constraint_expr);
    end if;
    if v_shape.node_list is not null or v_shape.exclude_nodes is not null then
        perform _check_nodes(v_shape.node_list || v_shape.exclude_nodes);
    end if;
    if num_nonnulls(v_ask.mem_per_node_mib, v_ask.mem_per_cpu_mib, v_ask.mem_per_gpu_mib) > 1 then
        raise exception using errcode = 'OD010',
            message = 'memory is requested in more than one way',
            hint = 'Use only one of --mem (per node), --mem-per-cpu and --mem-per-gpu.';
    end if;

    v_listed := _listed_nodes(v_shape);
    select array_agg(n.gpu_type) as types, array_agg(n.gpus) as gpus, array_agg(n.cpus) as cpus, array_agg(n.mem_mib) as mems,
           array_agg(n.partition_id) as partition_ids, array_agg(n.domain) as domains, array_agg(n.node_count) as counts
      into v_nodes
      from _possible_nodes(p_partition_ids, v_shape.gpu_type, v_shape.constraint_expr,
                           v_listed, v_shape.exclude_nodes) as n;
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

    -- The share of a node that its GPUs make: the smallest of the nodes that have enough GPUs.
    select min(n.cpus * v_counts.gpus_per_node / n.gpus) as cpus, min(n.mem::bigint * v_counts.gpus_per_node / n.gpus) as mem
      into v_share
      from unnest(v_nodes.gpus, v_nodes.cpus, v_nodes.mems) as n (gpus, cpus, mem)
     where v_counts.gpus_per_node > 0 and n.gpus >= v_counts.gpus_per_node;
    -- No node has 2^31 of anything; without these bounds the products could exceed bigint.
    v_gpus := least(v_counts.gpus_per_node, 2147483647);
    v_cpus := least(2147483647, greatest(
        v_counts.tasks_per_node * coalesce(v_ask.cpus_per_task, 1),
        case when v_ask.cpus_per_gpu is not null then v_ask.cpus_per_gpu * v_gpus
             when v_ask.cpus_per_task is null then v_share.cpus end));
    -- mem_mib / cpus is a node's own share per CPU; 0 MiB per node means all of the smallest node that fits.
    v_mem := coalesce(
        nullif(v_ask.mem_per_node_mib, 0),
        v_ask.mem_per_cpu_mib * v_cpus,
        v_ask.mem_per_gpu_mib * v_gpus,
        case when v_ask.mem_per_node_mib is null then coalesce(v_share.mem, v_cpus * (
            select min(p.def_mem_per_cpu_mib) from partition as p where p.id = any (p_partition_ids))) end,
        (select min(case when v_ask.mem_per_node_mib = 0 then n.mem else n.mem / n.cpus * v_cpus end)
           from unnest(v_nodes.gpus, v_nodes.cpus, v_nodes.mems) as n (gpus, cpus, mem)
          where n.gpus >= v_counts.gpus_per_node and n.cpus >= v_cpus),
        0);

    v_shape.node_count := least(v_counts.node_count, 2147483647);
    v_shape.gpus_per_node := v_gpus;
    v_shape.cpus_per_node := v_cpus;
    v_shape.mem_per_node_mib := least(v_mem, 2147483647);
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
