"""The options of a job that its environment will contain, and what its components ask for."""

from __future__ import annotations

from typing import Any

import msgspec

from odcd.records.job import ComponentSpec, JobSpec


def component_request(spec: ComponentSpec) -> dict[str, Any]:
    """A component as odc.submit_jobs takes it."""
    component = msgspec.structs.asdict(spec)
    del component["name"]
    component["gpu_type"] = spec.gpu_type.lower() if spec.gpu_type else None
    return component


def job_options(spec: JobSpec) -> dict[str, Any]:
    """The options that the job's environment will contain; only those that were given. components:
    those of each component."""
    options = {
        **_counts(spec),
        "submit_line": spec.submit_line,
        "image": spec.image,
        "launch": "first" if spec.runs_on_first_node else None,
        "spool_output": spec.spool_output or None,
        "pty": spec.pty or None,
        "components": [_given({"name": one.name, **_counts(one)}) for one in spec.components]
        or None,
    }
    return _given(options)


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _counts(spec: JobSpec | ComponentSpec) -> dict[str, Any]:
    kind = f"{spec.gpu_type.lower()}:" if spec.gpu_type else ""
    gpu_counts = (
        ("gpus", spec.gpus),
        ("gpus_per_node", spec.gpus_per_node),
        ("gpus_per_task", spec.gpus_per_task),
    )
    return {
        "ntasks": spec.ntasks,
        "ntasks_per_node": spec.ntasks_per_node,
        "cpus_per_task": spec.cpus_per_task,
        "mem_per_cpu_mib": spec.mem_per_cpu_mib,
        "mem_per_gpu_mib": spec.mem_per_gpu_mib,
        "gpus_spec": {name: f"{kind}{count}" for name, count in gpu_counts if count is not None}
        or None,
    }
