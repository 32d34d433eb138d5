-- odc._component_gpus: the GPUs of a heterogeneous job.
-- Arguments  p_components  of its shape
create or replace function odc._component_gpus(p_components jsonb)
returns integer
language sql immutable as $$
    select sum((c -> 'node_count')::integer * (c -> 'gpus_per_node')::integer)::integer from jsonb_array_elements(p_components) as c
$$;
