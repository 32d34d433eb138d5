"""GPU usage of jobs, as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from odcctl.text import render

HEADER = ("GPU-H", "BUSY", "SEEN", "MEMORY", "ENERGY")  # fmt: skip
TOTALS = ("USER", "JOBS", "GPU-H", "BUSY", "SEEN", "IDLE GPU-H", "ENERGY")
JOULES_A_KWH = 3_600_000
UNMEASURED = (
    "\n  An operator can set ODC_PROMETHEUS_URL to a Prometheus that has DCGM's series;"
    "\n  on one machine, NVIDIA's driver reports the usage. See docs/operating/gpu-use.md."
)
"""The hint below jobs without measurements."""


def describe(job: Mapping[str, Any], now_s: float) -> str:
    """The lines of `show`; empty without any measurement."""
    use = job.get("gpu_use")
    if not use:
        return ""
    lines: list[str] = []
    if use["seen_gpu_s"]:
        parts = [f"{busy(use)} busy of {hours(use['held_gpu_s'])} GPU-hours"]
        if seen(use) != "100 %":
            parts.append(f"{seen(use)} of them monitored")
        if use["mem_peak_mib"] is not None:
            parts.append(f"at most {render.memory(use['mem_peak_mib'])} of a GPU's memory")
        if use["energy_j"] is not None:
            parts.append(energy(use["energy_j"]))
        lines.append(", ".join(parts))
    elif use["held_gpu_s"] and not use["owed"]:
        lines.append(f"unknown, for {hours(use['held_gpu_s'])} GPU-hours")
    if use["gave_up"]:
        lines.append(f"incomplete: {use['gave_up']}")
    if use["owed"]:
        lines.append(f"still to be fetched for {render.counted(use['owed'], 'attempt')}")
    if use["now"]:
        lines.append(_now(use["now"], job, now_s))
    return "\n".join(lines)


def _now(now: Mapping[str, Any], job: Mapping[str, Any], now_s: float) -> str:
    parts = [f"now {percent(now['util_ratio'])} busy"]
    if now["mem_used_mib"] is not None:
        parts.append(f"{render.memory(now['mem_used_mib'])} used")
    if now["idle_gpus"]:
        since = render.clock(now["idle_since"], now_s)
        parts.append(f"{now['idle_gpus']} of {job['gpus']} GPUs idle since {since}")
    return ", ".join(parts)


def cells(job: Mapping[str, Any]) -> tuple[str, ...]:
    """The cells of a job under HEADER."""
    use = job.get("gpu_use") or {}
    memory, joules = use.get("mem_peak_mib"), use.get("energy_j")
    return (
        hours(use["held_gpu_s"]) if use else "-", busy(use), seen(use),
        "-" if memory is None else render.memory(memory), "-" if joules is None else energy(joules),
    )  # fmt: skip


def totals(listed: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """One row for each user with measurements, most idle GPU-hours first, under TOTALS."""
    by_user: dict[str, list[Mapping[str, Any]]] = {}
    for job in listed:
        if job.get("gpu_use"):
            by_user.setdefault(job["user"], []).append(job["gpu_use"])
    sums = {user: _sum(uses) for user, uses in by_user.items()}
    order = sorted(sums, key=lambda user: (-_idle_s(sums[user]), user))
    return [
        (
            user, str(len(by_user[user])), hours(sums[user]["held_gpu_s"]), busy(sums[user]),
            seen(sums[user]), hours(_idle_s(sums[user])),
            energy(sums[user]["energy_j"]) if sums[user]["energy_j"] else "-",
        )
        for user in order
    ]  # fmt: skip


def _sum(uses: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    keys = ("held_gpu_s", "seen_gpu_s", "busy_gpu_s", "energy_j")
    found: dict[str, float] = dict.fromkeys(keys, 0.0)
    for use in uses:
        for key in keys:
            found[key] += use[key] or 0
    return found


def _idle_s(use: Mapping[str, Any]) -> float:
    """The idle part of the measured time."""
    return use["seen_gpu_s"] - use["busy_gpu_s"]


def busy(use: Mapping[str, Any]) -> str:
    """The busy share of the measured time. A job has the exact ratio: its seconds are rounded."""
    if not use or not use["seen_gpu_s"]:
        return "-"
    return percent(use.get("busy_ratio", use["busy_gpu_s"] / use["seen_gpu_s"]))


def seen(use: Mapping[str, Any]) -> str:
    """The measured share of the allocated time."""
    if not use or not use["held_gpu_s"]:
        return "-"
    return percent(use["seen_gpu_s"] / use["held_gpu_s"])


def percent(ratio: float | None) -> str:
    """Whole percents; small positive ratios are "<1 %", never 0 %."""
    if ratio is None:
        return "-"
    if 0 < ratio < 0.005:
        return "<1 %"
    return f"{min(99, round(100 * ratio)) if ratio < 0.995 else 100} %"


def hours(gpu_s: float) -> str:
    return f"{gpu_s / 3600:.1f}"


def energy(joules: float) -> str:
    kwh = joules / JOULES_A_KWH
    return f"{1000 * kwh:.0f} Wh" if kwh < 1 else f"{kwh:.1f} kWh"
