-- Disk space of nodes, and jobs that need some of it (--tmp).
-- Locks node, node_group and shape for an instant: the new columns have constant defaults. shape is locked as long as its two
-- indexes take to build: milliseconds for thousands of shapes.

-- The disk space for jobs; 0: none, or unknown.
alter table node            add column tmp_mib integer not null default 0 check (tmp_mib >= 0);
alter table node_past       add column tmp_mib integer default 0;
alter table node_group      add column tmp_mib integer not null default 0;
alter table node_group_past add column tmp_mib integer default 0;
drop index node_group_value;
create unique index node_group_value on node_group (
    gpu_type, gpus, cpus, mem_mib, efa_domain, features, partition_ids, tmp_mib) nulls not distinct;

-- The disk space that each of its nodes must have. It is a property of the node, as in Slurm: jobs there share it.
alter table shape add column tmp_per_node_mib integer not null default 0 check (tmp_per_node_mib >= 0);
drop index shape_value;
create unique index shape_value on shape (
    node_count, gpus_per_node, gpu_type, cpus_per_node, mem_per_node_mib, exclusive,
    hash_array_extended(partition_ids, 0), md5(constraint_expr), hash_array_extended(node_list, 0),
    hash_array_extended(exclude_nodes, 0), node_count_max, switches, switches_wait_s, booking_id,
    jsonb_hash_extended(licences, 0), tmp_per_node_mib) nulls not distinct;

drop function if exists odc._possible_nodes(integer[], text, text, text[], text[]);
drop function if exists odc._node_values();
drop function if exists odc._seen_nodes(jsonb);
