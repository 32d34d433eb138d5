"""The request of a job that has ended, so that it can be submitted again as a new job.

The amounts are those that the job had: the defaults may have changed since then.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from odcd.records.job import UNLIMITED_S, JobSpec

_COPIED = (
    "name", "args", "work_dir", "umask", "stdin", "stdout", "stderr", "open_mode", "comment",
    "requeue", "signal_number", "signal_before_s", "signal_batch", "submit_host", "time_limit_s",
    "nice", "partitions", "account", "qos", "booking", "array", "script",
)  # fmt: skip
_COUNTS = (
    "ntasks", "ntasks_per_node", "cpus_per_task", "mem_per_cpu_mib", "mem_per_gpu_mib",
    "submit_line", "image", "spool_output",
)  # fmt: skip


def spec_of(row: Mapping[str, Any], *, hold: bool) -> JobSpec:
    """row: of odc.ended_request. Its begin time, deadline and dependencies are left out, because
    they were met, or are in the past. hold: the new job waits until it is released."""
    shape, options = row["shape"], row["options"]
    fields = {name: row[name] for name in _COPIED}
    fields |= {name: options[name] for name in _COUNTS if name in options}
    fields |= _amounts(shape, options)
    fields |= {
        "environment": json.loads(row["environment"]),
        "hold": hold,
        "gpu_type": shape["gpu_type"],
        "node_count": shape["node_count"],
        "node_count_max": shape["node_count_max"],
        "switches": shape["switches"],
        "exclusive": shape["exclusive"],
        "constraint": shape["constraint_expr"],
        "node_list": shape["node_list"] or [],
        "exclude_nodes": shape["exclude_nodes"] or [],
        "licences": shape["licences"] or {},
        "tmp_mib": shape["tmp_per_node_mib"] or None,
    }
    if shape["switches"] is not None:
        wait_s = shape["switches_wait_s"]
        fields["switches_wait_s"] = UNLIMITED_S if wait_s is None else wait_s
    if row["mail"] is not None:
        fields["mail_types"] = [kind.upper() for kind in row["mail"]["kinds"]]
        fields["mail_user"] = row["mail"]["address"]
    return msgspec.convert(fields, JobSpec)


def _amounts(shape: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """The GPUs, CPUs and memory, as they were requested where that is known, because the job's
    environment contains it."""
    gpus, cpus = shape["gpus_per_node"], shape["cpus_per_node"]
    spec: Mapping[str, str] = options.get("gpus_spec") or {}
    amounts: dict[str, Any] = {
        name: int(text.rpartition(":")[2]) for name, text in spec.items()
    }  # fmt: skip
    if gpus and cpus % gpus == 0:
        amounts["cpus_per_gpu"] = cpus // gpus
    if not options.keys() & {"mem_per_cpu_mib", "mem_per_gpu_mib"}:
        amounts["mem_per_node_mib"] = shape["mem_per_node_mib"] or None
    return amounts
