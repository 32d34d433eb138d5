"""The parts of a request beside its size: read only for the columns that show them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Requested:
    """stdin: the path as submitted; None: no input. submit_line: the command line of sbatch; None:
    unknown."""

    gid: int
    requeue: bool
    stdin: str | None
    submit_host: str | None
    submit_line: str | None
    ntasks: int | None
    cpus_per_task: int | None
    constraint: str | None
    nodes: tuple[str, ...]
    excluded: tuple[str, ...]
    exclusive: bool
    tmp_mib: int
    components: tuple[Mapping[str, Any], ...] = ()
    """Of a heterogeneous job: the options of each component."""


def requested_of(row: Mapping[str, Any]) -> Requested:
    """row: of odc.list_requests."""
    raw = row["options"]
    options: dict[str, Any] = json.loads(raw) if isinstance(raw, str) else raw
    return Requested(
        gid=row["gid"],
        requeue=row["requeue"],
        stdin=row["stdin"],
        submit_host=row["submit_host"],
        submit_line=options.get("submit_line"),
        ntasks=options.get("ntasks"),
        cpus_per_task=options.get("cpus_per_task"),
        constraint=row["constraint_expr"],
        nodes=tuple(row["node_list"] or ()),
        excluded=tuple(row["exclude_nodes"] or ()),
        exclusive=row["exclusive"],
        tmp_mib=row["tmp_per_node_mib"],
        components=tuple(options.get("components") or ()),
    )
