-- Heterogeneous jobs: one job whose nodes are not alike.
-- Locks shape for an instant: the new column has no default. shape is locked as long as its index takes to build:
-- milliseconds for thousands of shapes.

-- What each component asks for, in order: an array of objects with the names of this table's columns. null: all nodes of the
-- job are alike. With it, node_count is the sum, and the amounts of a node are the largest of the components.
alter table shape add column components jsonb check (jsonb_typeof(components) = 'array');
create index shape_components on shape (id) where components is not null;
drop index shape_value;
create unique index shape_value on shape (
    node_count, gpus_per_node, gpu_type, cpus_per_node, mem_per_node_mib, exclusive,
    hash_array_extended(partition_ids, 0), md5(constraint_expr), hash_array_extended(node_list, 0),
    hash_array_extended(exclude_nodes, 0), node_count_max, switches, switches_wait_s, booking_id,
    jsonb_hash_extended(licences, 0), tmp_per_node_mib, md5(components::text)) nulls not distinct;

drop function if exists odc._assign_ids(jsonb[], integer[], integer[], boolean, timestamptz);
drop function if exists odc._plan_shapes(integer[], integer[], jsonb, integer[]);
drop function if exists odc._load_pass(
    timestamptz, jsonb, boolean, integer[], boolean, integer[], integer[], integer[], integer[], integer[], text[], integer[],
    integer[], integer[]);
