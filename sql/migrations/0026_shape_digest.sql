-- Shapes are unique by digests of what can be long: a b-tree entry has at most 2,704 bytes, so a job with a long list of
-- nodes could not be kept. Locks shape for as long as the index takes to build: milliseconds for thousands of shapes.
drop index shape_value;
create unique index shape_value on shape (
    node_count, gpus_per_node, gpu_type, cpus_per_node, mem_per_node_mib, exclusive,
    hash_array_extended(partition_ids, 0), md5(constraint_expr), hash_array_extended(node_list, 0),
    hash_array_extended(exclude_nodes, 0), node_count_max, switches, switches_wait_s, booking_id,
    jsonb_hash_extended(licences, 0)) nulls not distinct;
