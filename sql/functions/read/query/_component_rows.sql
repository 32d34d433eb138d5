-- odc._component_rows: the components of a heterogeneous job as the API shows them.
-- Arguments  p_components  of its shape; null: it is not heterogeneous;  p_options  the job's options
-- Returns    [{"name", "node_count", "gpus_per_node", "gpu_type", "cpus_per_node", "mem_per_node_mib"}]; null: not heterogeneous
create or replace function odc._component_rows(p_components jsonb, p_options jsonb)
returns json
language sql immutable as $$
    select json_agg(json_build_object(
               'name', p_options -> 'components' -> (c.ord - 1)::integer ->> 'name', 'node_count', c.body -> 'node_count',
               'gpus_per_node', c.body -> 'gpus_per_node', 'gpu_type', c.body -> 'gpu_type',
               'cpus_per_node', c.body -> 'cpus_per_node', 'mem_per_node_mib', c.body -> 'mem_per_node_mib') order by c.ord)
      from jsonb_array_elements(p_components) with ordinality as c (body, ord)
$$;
