"""The changes of a replay: policy, nodes, limits and QOS."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from odcd.errors import BadRequest
from odcd.simulate.policy import Policy
from odcd.simulate.site.records import Row, Site
from odcd.slurm.hostlists import compress_hosts, expand_hosts

_ADD = re.compile(r"(?P<type>[A-Za-z0-9._-]+):(?P<gpus>\d{1,3})x(?P<count>\d{1,5})")
_ADD_HINT = "Write TYPE:GPUSxNODES: h100:8x4 is four nodes with eight h100 each."
MAX_NODES = 20_000
SCOPES = ("qos", "account", "partition")
PERS = ("group", "user", "account", "job")
WHATS = ("jobs", "submitted", "gpus", "gpu_minutes", "cpus", "nodes", "wall_s")
QOS_NUMBERS = ("priority", "exempt_s", "grace_s")
_SET_HINT = (
    "Write SCOPE:NAME:PER:WHAT=N or none, for example qos:normal:user:gpus=16 or "
    "partition:main:user:jobs=none; or qos:NAME:priority=N, exempt_s, grace_s, preempt_mode or "
    "preempts."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """The options of one replay. add, remove and settings are as on the command line."""

    policy: Policy = field(default_factory=Policy)
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()

    @property
    def changes_nothing(self) -> bool:
        return self == Scenario()

    def __str__(self) -> str:
        policy = self.policy
        depth = None if policy.plan_depth is None else f"plan depth {policy.plan_depth}"
        wait = None if policy.max_wait_s is None else f"longest wait {policy.max_wait_s or 'none'}"
        parts = [
            None if policy.name is None else f"policy {policy.name}",
            depth,
            None if policy.backfill is None else f"backfill {policy.backfill}",
            wait,
            *(f"add {text}" for text in self.add),
            *(f"remove {text}" for text in self.remove),
            *self.settings,
        ]
        return ", ".join(part for part in parts if part) or "the site's own settings"


def applied(site: Site, scenario: Scenario) -> Site:
    """The site with the changes. Raises BadRequest for one that is invalid or names nothing."""
    tables = {name: [dict(row) for row in rows] for name, rows in site.tables.items()}
    for text in scenario.remove:
        _remove(tables, text)
    for text in scenario.add:
        _add(tables, text)
    if len(tables["node"]) > MAX_NODES:
        raise BadRequest(f"more than {MAX_NODES} nodes", "Add fewer nodes.")
    if not tables["node"]:
        raise BadRequest("no node is left", "Remove fewer nodes, or add some.")
    _set_policy(tables, scenario.policy)
    for text in scenario.settings:
        _set(tables, text)
    names = {row["name"] for row in tables["node"]}
    return replace(
        site, tables=tables, changes=tuple(one for one in site.changes if one.node in names)
    )


def _remove(tables: dict[str, list[Row]], text: str) -> None:
    nodes = {row["name"]: row for row in tables["node"]}
    names = expand_hosts(text)
    unknown = [name for name in names if name not in nodes]
    if unknown:
        raise BadRequest(
            f'--remove "{text}": node {", ".join(unknown[:5])} does not exist',
            f"Nodes: {compress_hosts(nodes) or 'none'}.",
        )
    gone = {nodes[name]["id"] for name in names}
    tables["node"] = [row for row in tables["node"] if row["id"] not in gone]
    for table in ("partition_node", "booking_node"):
        tables[table] = [row for row in tables[table] if row["node_id"] not in gone]


def _add(tables: dict[str, list[Row]], text: str) -> None:
    """Add nodes like the most common ones of their type: in the same partitions, zone and group."""
    found = _ADD.fullmatch(text)
    if found is None or not 0 < int(found["count"]) <= MAX_NODES or int(found["gpus"]) > 62:
        raise BadRequest(f'--add "{text}" is not a type and number of nodes', _ADD_HINT)
    name, gpus = found["type"], int(found["gpus"])
    types = {row["name"]: row for row in tables["gpu_type"]}
    if name not in types:
        raise BadRequest(
            f'--add "{text}": GPU type "{name}" does not exist', f"Types: {', '.join(types)}."
        )
    alike = [row for row in tables["node"] if row["gpu_type"] == name]
    model = _most_common(alike)
    size = _most_common([row for row in alike if row["gpus"] == gpus])
    cpus = size["cpus"] if size else types[name]["cpus_per_node"]
    mem_mib = size["mem_mib"] if size else types[name]["mem_per_node_mib"]
    place = {"zone": None, "efa_domain": None, "features": [], "topology": []}
    if model is not None:
        place = {key: model[key] for key in place}
    partitions = _partitions_of(tables, model)
    taken = {row["name"] for row in tables["node"]}
    node_id = max((row["id"] for row in tables["node"]), default=0)
    number = 0
    for _ in range(int(found["count"])):
        node_id += 1
        number += 1
        while f"added-{number}" in taken:
            number += 1
        taken.add(f"added-{number}")
        tables["node"].append(
            {
                "id": node_id, "name": f"added-{number}", "gpu_type": name, "gpus": gpus,
                "cpus": cpus, "mem_mib": mem_mib, **place,
            }
        )  # fmt: skip
        tables["partition_node"] += [
            {"partition_id": partition, "node_id": node_id} for partition in partitions
        ]


def _most_common(rows: Sequence[Row]) -> Row | None:
    keys = ("gpus", "cpus", "mem_mib", "zone", "efa_domain", "features", "topology")
    counts = Counter(str([row[key] for key in keys]) for row in rows)
    if not counts:
        return None
    common = counts.most_common(1)[0][0]
    return next(row for row in rows if str([row[key] for key in keys]) == common)


def _partitions_of(tables: dict[str, list[Row]], model: Row | None) -> list[int]:
    """The partitions that name their nodes and have the model among them."""
    if model is None:
        return []
    return [
        row["partition_id"] for row in tables["partition_node"] if row["node_id"] == model["id"]
    ]


def _set_policy(tables: dict[str, list[Row]], policy: Policy) -> None:
    """Change every partition's policy, or the parts of the policies that are in use."""
    policies = {row["name"]: row for row in tables["policy"]}
    if policy.name is not None:
        if policy.name not in policies:
            raise BadRequest(
                f'policy "{policy.name}" does not exist', f"Policies: {', '.join(policies)}."
            )
        for row in tables["partition"]:
            row["policy"] = policy.name
    for name in {row["policy"] for row in tables["partition"]}:
        row = policies[name]
        if policy.plan_depth is not None:
            row["plan_depth"] = policy.plan_depth
        if policy.backfill is not None:
            row["backfill"] = policy.backfill
        if policy.max_wait_s is not None:
            row["max_wait_s"] = policy.max_wait_s or None


def _set(tables: dict[str, list[Row]], text: str) -> None:
    """One limit, or one value of a QOS."""
    left, equals, value = text.partition("=")
    parts = left.split(":")
    if not equals or len(parts) not in (3, 4) or parts[0] not in SCOPES:
        raise BadRequest(f'--set "{text}" is not a limit or a value of a QOS', _SET_HINT)
    rows = {row["name"]: row for row in tables[parts[0]]}
    if parts[1] not in rows:
        raise BadRequest(
            f'--set "{text}": {parts[0]} "{parts[1]}" does not exist',
            f"There are: {', '.join(rows)}.",
        )
    if len(parts) == 3:
        _set_qos(rows, text, parts, value)
        return
    scope, name, per, what = parts
    if per not in PERS or what not in WHATS:
        raise BadRequest(
            f'--set "{text}": no such limit', f"PER: {', '.join(PERS)}. WHAT: {', '.join(WHATS)}."
        )
    key = {"scope": scope, "scope_id": rows[name]["id"], "per": per, "what": what}
    limits = [row for row in tables["resource_limit"] if any(row[k] != v for k, v in key.items())]
    if value != "none":
        limits.append({**key, "value": _number(value, text)})
    tables["resource_limit"] = limits


def _set_qos(rows: dict[str, Row], text: str, parts: Sequence[str], value: str) -> None:
    scope, name, column = parts
    row: dict[str, Any] = rows[name]
    if scope == "qos" and column in QOS_NUMBERS:
        row[column] = _number(value, text)
    elif scope == "qos" and column == "preempt_mode" and value in ("requeue", "cancel"):
        row[column] = value
    elif scope == "qos" and column == "preempts":
        names = [one for one in value.split(",") if one and one != "none"]
        unknown = [one for one in names if one not in rows or one == name]
        if unknown:
            raise BadRequest(
                f'--set "{text}": QOS {", ".join(unknown)} cannot be preempted by {name}',
                f"QOS: {', '.join(rows)}.",
            )
        row[column] = [rows[one]["id"] for one in names]
    else:
        raise BadRequest(f'--set "{text}" is not a limit or a value of a QOS', _SET_HINT)


def _number(text: str, whole: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 10):
        raise BadRequest(f'--set "{whole}": "{text}" is not a whole number', _SET_HINT)
    return int(text)
