-- odc._step_room: how many tasks of a step fit into these CPUs and GPUs of one node.
-- Arguments  p_per_node  the most tasks on one node; null: no limit
create or replace function odc._step_room(
    p_cpus integer, p_mask bigint, p_cpus_per_task integer, p_gpus_per_task integer, p_per_node integer)
returns integer
language sql immutable set search_path = odc, pg_temp as $$
    select greatest(0, least(p_cpus / p_cpus_per_task,
                             case when p_gpus_per_task > 0 then bit_count(p_mask::bit(64))::integer / p_gpus_per_task end,
                             p_per_node));
$$;
