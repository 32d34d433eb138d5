"""The tables of a site that decide about its jobs, and the columns that a replay reads."""

from __future__ import annotations

TABLES = {
    "gpu_type": "name, label, gpus_per_node, gpu_mem_mib, cpus_per_node, mem_per_node_mib, "
    "efa_per_node",
    "node": "id, name, gpu_type, gpus, cpus, mem_mib, zone, efa_domain, features, topology",
    "policy": "name, ordering, max_wait_s, backfill, plan_depth",
    "partition": "id, name, is_default, all_nodes, max_nodes, policy, placement, tier",
    "partition_node": "partition_id, node_id",
    "account": "id, name, parent, shares",
    "qos": "id, name, priority, usage_factor, preempts, preempt_mode, exempt_s, grace_s",
    "association": "id, account_id, uid, user_name, partition_id, shares, made_at",
    "resource_limit": "scope, scope_id, per, what, value",
    "priority_weight": "factor, weight",
    "priority_setting": "max_age_s, half_life_s",
    "account_setting": "cpus_per_gpu",
    "licence": "name, total",
    "usage": "account_id, uid, qos_id, user_name, used_ms, used_gpu_ms, used_at",
    "shape": "id, partition_ids, node_count, gpus_per_node, gpu_type, cpus_per_node, "
    "mem_per_node_mib, exclusive, constraint_expr, node_list, exclude_nodes, node_count_max, "
    "switches, switches_wait_s, booking_id, licences",
    "booking": "id, name, kind, starts_at, duration_s, repeats, repeats_until, node_list, "
    "gpu_type, partition_id, all_nodes, node_count, user_names, uids, account_ids, "
    "ignore_running, created_at",
    "booking_node": "booking_id, node_id",
}
"""In the order in which they can be loaded."""

_BOOKED = (
    "select b.id from odc.booking as b where b.state <> 'DELETED' and b.starts_at < $2 "
    "and (b.repeats <> 'none' or b.starts_at + b.duration_s * interval '1 second' > $1)"
)
_CONDITIONS = {
    "shape": "t.id = any ($3::integer[])",
    "booking": f"t.id in ({_BOOKED})",
    "booking_node": f"t.booking_id in ({_BOOKED})",
}
_USAGE_AT = """
    select distinct on (account_id, uid, qos_id) *
      from (select 0 as live, past_id, past_absent, {columns}
              from odc.usage_past where past_at > $1
             union all
            select 1, 0, false, {columns} from odc.usage) as u
     order by account_id, uid, qos_id, live, past_id
"""  # fmt: skip


def select(table: str) -> str:
    """A query for the rows of a table as one JSON array; $1 and $2 are the window, $3 the ids of
    the shapes. Usage is as it was at the start of the window."""
    columns = TABLES[table]
    source = f"select {columns} from odc.{table} as t where {_CONDITIONS.get(table, 'true')}"
    if table == "usage":
        then = _USAGE_AT.format(columns=columns)
        source = f"select {columns} from ({then}) as t where not past_absent"
    # The parameters are named, because PostgreSQL wants to know the type of each.
    return (
        f"select coalesce(json_agg(to_json(r)), '[]')::text from ({source} "
        "and $1::timestamptz <= $2::timestamptz and $3::integer[] is not null) as r"
    )
