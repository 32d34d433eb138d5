-- odc._resolve_counts: the number of nodes, and the tasks and GPUs on each, for a job that gives tasks, totals and
-- shares. Without a node count, it is the smallest number of nodes that have room for the totals, on the node type that
-- needs the fewest. Every node gets the same amounts, so a total of GPUs must divide evenly over the nodes. With n to m
-- nodes, a total also chooses the smallest sufficient number; without a total the number stays open.
-- It is one function, because each number is derived from the numbers before it.
-- Arguments  p_ask   the job as submitted
--            p_gpus, p_cpus, p_mems  sizes of the nodes it might run on, parallel
-- Raises     OD010 BadRequest: the numbers contradict one another
create or replace function odc._resolve_counts(
    p_ask jsonb, p_gpus integer[], p_cpus integer[], p_mems integer[],
    out node_count bigint, out node_count_max bigint, out tasks_per_node bigint, out gpus_per_node bigint)
language plpgsql immutable set search_path = odc, pg_temp as $$
declare
    v_ask    record;
    v_tasks  bigint;
    v_total  bigint;
    v_least  bigint;        -- n to m nodes were requested
    v_most   bigint;
    v_forced text;
begin
    select * into v_ask
      from jsonb_to_record(p_ask) as a (
           node_count bigint, node_count_max bigint, ntasks bigint, ntasks_per_node bigint, cpus_per_task bigint, cpus_per_gpu bigint,
           gpus bigint, gpus_per_node bigint, gpus_per_task bigint, mem_per_cpu_mib bigint, mem_per_gpu_mib bigint,
           node_list text[]);
    node_count := v_ask.node_count;
    v_tasks := v_ask.ntasks;
    tasks_per_node := v_ask.ntasks_per_node;
    v_total := nullif(v_ask.gpus, 0);
    gpus_per_node := nullif(v_ask.gpus_per_node, 0);

    if v_ask.gpus_per_task > 0 and v_tasks is null and tasks_per_node is null then
        if v_total is not null then
            perform _divide('--gpus', v_total, '--gpus-per-task', v_ask.gpus_per_task);
            v_tasks := v_total / v_ask.gpus_per_task;
        elsif gpus_per_node is not null then
            perform _divide('--gpus-per-node (or --gres)', gpus_per_node, '--gpus-per-task', v_ask.gpus_per_task);
            tasks_per_node := gpus_per_node / v_ask.gpus_per_task;
        end if;
    end if;

    if v_ask.node_count_max > node_count then
        if v_tasks is not null or v_total is not null then
            if v_tasks is null and gpus_per_node is null then
                raise exception using errcode = 'OD010',
                    message = format('%s GPUs in total on %s to %s nodes do not determine the GPUs on each node',
                                     v_total, node_count, v_ask.node_count_max),
                    hint = 'Use --gpus-per-node or --gres, or request a single number of nodes.';
            end if;
            v_least := node_count;  v_most := v_ask.node_count_max;
            node_count := null;
        else
            node_count_max := v_ask.node_count_max;
        end if;
    end if;

    if node_count is null then
        if v_tasks is not null and tasks_per_node is not null then
            node_count := (v_tasks + tasks_per_node - 1) / tasks_per_node;
        elsif v_total is not null and gpus_per_node is not null then
            perform _divide('--gpus', v_total, '--gpus-per-node (or --gres)', gpus_per_node);
            node_count := v_total / gpus_per_node;
        elsif v_ask.node_list <> '{}' and v_least is null then
            node_count := (select count(distinct n) from unnest(v_ask.node_list) as n);
        elsif v_tasks is not null or v_total is not null then
            -- The usable part of each node, then the number of such nodes that the totals need.
            select min(greatest(1, (v_total + u.gpus - 1) / u.gpus, (v_tasks + u.tasks - 1) / u.tasks))
              into node_count
              from unnest(p_gpus, p_cpus, p_mems) as n (gpus, cpus, mem)
             cross join lateral (
                   select least(n.cpus, n.mem / nullif(v_ask.mem_per_cpu_mib, 0)) as cpus) as c
             cross join lateral (
                   select least(n.gpus, c.cpus / v_ask.cpus_per_gpu, n.mem / nullif(v_ask.mem_per_gpu_mib, 0)) as gpus) as g
             cross join lateral (
                   select nullif(g.gpus, 0) as gpus,
                          nullif(least(c.cpus / coalesce(v_ask.cpus_per_task, 1),
                                       g.gpus / nullif(v_ask.gpus_per_task, 0)), 0) as tasks) as u
             where (v_total is null or u.gpus is not null) and (v_tasks is null or u.tasks is not null)
               and (gpus_per_node is null or n.gpus >= gpus_per_node);
        end if;
        node_count := coalesce(node_count, 1);
        if node_count > v_most or node_count < v_least and tasks_per_node is null and v_total is not null and gpus_per_node is not null then
            raise exception using errcode = 'OD010',
                message = format('it needs %s nodes, but requests %s to %s', node_count, v_least, v_most),
                hint = 'Leave the number of nodes out, or change the request for each node.';
        end if;
        node_count := greatest(node_count, v_least);
    end if;

    if v_tasks < node_count then
        raise exception using errcode = 'OD010',
            message = format('%s tasks cannot run on %s nodes', v_tasks, node_count),
            hint = format('Request at most %s nodes, or at least %s tasks.', v_tasks, node_count);
    end if;
    if v_tasks > node_count * tasks_per_node then
        raise exception using errcode = 'OD010',
            message = format('%s tasks do not fit on %s nodes with %s tasks each', v_tasks, node_count, tasks_per_node),
            hint = format('Request %s nodes, or leave the number of nodes out.',
                          (v_tasks + tasks_per_node - 1) / tasks_per_node);
    end if;
    tasks_per_node := case when tasks_per_node is not null then least(tasks_per_node, v_tasks)
                           else coalesce((v_tasks + node_count - 1) / node_count, 1) end;

    if gpus_per_node is null then
        if v_total is not null then
            if v_total % node_count <> 0 then
                raise exception using errcode = 'OD010',
                    message = format('%s GPUs cannot be split evenly over %s nodes', v_total, node_count),
                    hint = format('Request %s or %s GPUs, or use --nodes and --gpus-per-node.',
                                  v_total - v_total % node_count, v_total - v_total % node_count + node_count);
            end if;
            gpus_per_node := v_total / node_count;
        else
            gpus_per_node := coalesce(v_ask.gpus_per_task, 0) * tasks_per_node;
        end if;
    end if;
    v_forced := case
        when v_total <> gpus_per_node::numeric * node_count
            then format('%s GPUs in total do not match %s on each of %s nodes', v_total, gpus_per_node, node_count)
        when v_ask.gpus_per_task > 0 and v_ask.gpus_per_task * tasks_per_node <> gpus_per_node
            then format('%s tasks with %s GPUs each do not match %s GPUs on a node',
                        tasks_per_node, v_ask.gpus_per_task, gpus_per_node)
    end;
    if v_forced is not null then
        raise exception using errcode = 'OD010', message = v_forced,
            hint = 'Leave one of --gpus, --gpus-per-node and --gpus-per-task out.';
    end if;
end;
$$;
