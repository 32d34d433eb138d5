"""CPU time and memory of jobs that have ended, as text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from odcctl.text import render
from odcctl.text.gpu_use import percent


def describe(job: Mapping[str, Any]) -> str:
    """The line of `show`; empty without any measurement."""
    use = job.get("resource_use")
    if not use:
        return ""
    cpus = job["cpus_per_node"] * job["node_count"]
    cpu_s = _cpu_s(use)
    parts = [f"{render.duration(cpu_s) if cpu_s >= 10 else f'{cpu_s:.1f} s'} of CPU time"]
    if cpus and cpu_share(job) != "-":  # its elapsed time has whole seconds, so it may be 0
        parts[0] += f" ({cpu_share(job)} of {render.counted(cpus, 'CPU')})"
    parts.append(f"{_size(use['max_rss_kib'])} in the largest process")
    for key, verb in (("read_kib", "read"), ("written_kib", "written")):
        if use[key]:
            parts.append(f"{_size(use[key])} {verb}")
    return ", ".join(parts)


def cpu_share(job: Mapping[str, Any]) -> str:
    """The used share of the CPU time that the job had."""
    use, cpus = job.get("resource_use"), job["cpus_per_node"] * job["node_count"]
    held_s = cpus * (render.seconds_between(job.get("started_at"), job.get("ended_at")) or 0)
    return percent(_cpu_s(use) / held_s) if use and held_s > 0 else "-"


def resident(job: Mapping[str, Any]) -> str:
    """The memory of the job's largest process."""
    use = job.get("resource_use")
    return _size(use["max_rss_kib"]) if use else "-"


def _cpu_s(use: Mapping[str, Any]) -> float:
    return use["user_cpu_s"] + use["system_cpu_s"]


def _size(kib: int) -> str:
    return render.memory(-(-kib // 1024))
