-- odc._describe_need: what a shape needs, in words, and, if known, how many nodes it could use now. Nodes that fit but
-- are kept for other jobs are not counted. For n to m nodes it says n. Of a heterogeneous job it says what
-- each component needs.
create or replace function odc._describe_need(p_shape odc.shape, p_fitting integer)
returns text
language sql stable as $$
    select case when p_shape.components is not null then (
        select 'needs at the same time ' || string_agg(
                   format('%s %s with %s%s', c.node_count, case when c.node_count = 1 then 'node' else 'nodes' end,
                          case when c.exclusive then 'no other jobs'
                               when c.gpus_per_node > 0 then format('%s free %s%s', c.gpus_per_node, coalesce(c.gpu_type || ' ', ''),
                                                                    case when c.gpus_per_node = 1 then 'GPU' else 'GPUs' end)
                               else format('%s free %s and %s of memory', c.cpus_per_node,
                                           case when c.cpus_per_node = 1 then 'CPU' else 'CPUs' end, odc._mib(c.mem_per_node_mib)) end,
                          case when c.node_count > 1 and not c.exclusive then ' each' else '' end), ' + ' order by c.ordinality)
          from jsonb_populate_recordset(null::odc.shape, p_shape.components) with ordinality as c)
    else format('needs %s%s%s with %s%s%s%s',
                  case when p_shape.node_count_max is not null then 'at least ' else '' end,
                  p_shape.node_count, case when p_shape.node_count = 1 then ' node' else ' nodes' end,
                  case when p_shape.exclusive
                       then case when p_shape.node_count = 1 then 'no other jobs on it' else 'no other jobs on them' end
                       when p_shape.gpus_per_node > 0
                       then format('%s free %s%s', p_shape.gpus_per_node,
                                   coalesce(p_shape.gpu_type || ' ', ''),
                                   case when p_shape.gpus_per_node = 1 then 'GPU' else 'GPUs' end)
                       else format('%s free %s and %s of memory', p_shape.cpus_per_node,
                                   case when p_shape.cpus_per_node = 1 then 'CPU' else 'CPUs' end,
                                   odc._mib(p_shape.mem_per_node_mib)) end,
                  case when p_shape.node_count > 1 and not p_shape.exclusive then ' each' else '' end,
                  case when p_shape.switches is null then ''
                       else format(', and waits %s for them to be in at most %s topology %s',
                                   coalesce('up to ' || odc._duration(p_shape.switches_wait_s), 'as long as it takes'),
                                   p_shape.switches, case when p_shape.switches = 1 then 'block' else 'blocks' end) end,
                  case when p_fitting is null then ''
                       when p_fitting = 0 then '; none is free for it now'
                       else format('; %s %s free for it now', p_fitting, case when p_fitting = 1 then 'is' else 'are' end) end) end;
$$;
