"""srun --cpu-bind: the CPUs of each task."""

from __future__ import annotations

from collections.abc import Sequence

from odcd.errors import BadRequest
from odcd.slurm.commands.srun import StepCall

MAX_MASK = 1026
"""Characters of a mask of CPUs: 4,096 CPUs."""


def bound_cpus(call: StepCall, local: int, cpus: Sequence[int]) -> list[int] | None:
    """The CPUs that --cpu-bind gives to a task, among those of this machine; None: all."""
    parts = [part.strip() for part in (call.cpu_bind or "").split(",") if part.strip()]
    kind = next((p for p in parts if p not in ("q", "quiet", "v", "verbose")), "none")
    name, _, text = kind.partition(":")
    if not cpus or name in ("none", "no", "boards", "sockets", "ldoms", "help"):
        return None
    given = [text, *parts[parts.index(kind) + 1 :]]
    if len(given[local % len(given)]) > MAX_MASK:
        raise BadRequest(f'"{(call.cpu_bind or "")[:60]}" is not a binding of CPUs')
    try:
        if name == "map_cpu":
            return [int(given[local % len(given)], 0)]
        if name == "mask_cpu":
            mask = int(given[local % len(given)], 16)
            return [at for at in range(mask.bit_length()) if mask >> at & 1]
    except ValueError:
        raise BadRequest(f'"{(call.cpu_bind or "")[:60]}" is not a binding of CPUs') from None
    if name in ("cores", "threads", "rank", "rank_ldom"):
        width = min(call.cpus_per_task or 1, len(cpus))
        return sorted({cpus[(local * width + at) % len(cpus)] for at in range(width)})
    raise BadRequest(f'"{(call.cpu_bind or "")[:60]}" is not a binding of CPUs')
