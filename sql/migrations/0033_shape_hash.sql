-- Shapes are found by one hash of their value: most of shape_value's columns can be null, and `is not distinct from` can use
-- no index, so each new shape read thousands of others. Locks shape for as long as the index takes to build: milliseconds
-- for thousands of shapes.
create index shape_hash on shape (hash_record_extended(row(
    node_count, gpus_per_node, gpu_type, cpus_per_node, mem_per_node_mib, exclusive, partition_ids, constraint_expr,
    node_list, exclude_nodes, node_count_max, switches, switches_wait_s, booking_id, licences), 0));
