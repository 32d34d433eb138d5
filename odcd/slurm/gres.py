"""GPU requests in sbatch's forms, and a check that the different forms agree."""

from __future__ import annotations

import re
from dataclasses import dataclass

from odcd.errors import BadRequest, NotImplementedYet

_TYPE = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,199}")
MAX_GPUS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuRequest:
    """type: lower case; None for any type."""

    count: int
    type: str | None = None


def parse_gres(text: str) -> GpuRequest:
    """Parse --gres: gpu, gpu:2, gpu:h100:2; `none` means no GPU."""
    hint = "Accepted: gpu[:TYPE][:COUNT], such as gpu:2 or gpu:h100:8."
    if text.strip().lower() == "none":
        return GpuRequest(count=0)
    parts = [part.strip() for part in text.split(",")]
    for part in parts:
        name = part.removeprefix("gres/").removeprefix("gres:").split(":")[0].split("=")[0]
        if re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name) and name.lower() != "gpu":
            raise NotImplementedYet(
                f'odc does not support the generic resource "{name[:60]}" yet', hint
            )
    if len(parts) > 1:
        raise NotImplementedYet(
            f'"{text[:60]}" requests several types of GPU, which odc cannot give to one job yet',
            hint,
        )
    fields = re.split("[:=]", parts[0].removeprefix("gres/").removeprefix("gres:"))
    if fields[0].lower() != "gpu" or len(fields) > 3:
        raise _not_gpus(text, hint)
    return _request(fields[1:], text, hint)


def parse_gpus(text: str) -> GpuRequest:
    """Parse --gpus, --gpus-per-node, --gpus-per-task: 4, h100:4, h100."""
    hint = "Accepted: [TYPE:]COUNT, such as 4 or h100:4."
    if "," in text:
        raise NotImplementedYet(
            f'"{text[:60]}" requests several types of GPU, which odc cannot give to one job yet',
            hint,
        )
    fields = text.strip().split(":")
    if len(fields) > 2:
        raise _not_gpus(text, hint)
    return _request(fields, text, hint)


def _request(fields: list[str], text: str, hint: str) -> GpuRequest:
    """The request for [], [count], [type] or [type, count]; a type alone means one GPU."""
    kind = None
    if fields and not fields[0][:1].isdigit():
        kind, fields = fields[0].strip(), fields[1:]
        if not _TYPE.fullmatch(kind):
            raise _not_gpus(text, hint)
    if len(fields) > 1:
        raise _not_gpus(text, hint)
    number = fields[0].strip() if fields else "1"
    if not re.fullmatch("[0-9]{1,9}", number) or int(number) > MAX_GPUS:
        raise _not_gpus(text, hint)
    return GpuRequest(count=int(number), type=kind.lower() if kind else None)


def _not_gpus(text: str, hint: str) -> BadRequest:
    return BadRequest(f'"{text[:60]}" is not a number of GPUs', hint)


def agreed_type(requests: dict[str, GpuRequest | None]) -> str | None:
    """The GPU type that the options name; raises BadRequest when they name two."""
    named = {
        option: r.type for option, r in requests.items() if r is not None and r.type is not None
    }
    if len(set(named.values())) > 1:
        types = ", ".join(f"--{option} says {kind}" for option, kind in named.items())
        raise BadRequest(f"the GPU type is ambiguous: {types}", "Name one type.")
    return next(iter(named.values()), None)


def check_counts(
    *, total: int | None, per_node: int | None, per_task: int | None,
    nodes: int | None, tasks: int | None, tasks_per_node: int | None,
) -> None:  # fmt: skip
    """Raise BadRequest if the given counts contradict each other."""
    if tasks is None and nodes is not None and tasks_per_node is not None:
        tasks = nodes * tasks_per_node
    checks = (
        ("gpus", total, "gpus-per-node", per_node, "nodes", nodes),
        ("gpus", total, "gpus-per-task", per_task, "tasks", tasks),
        ("gpus-per-node", per_node, "gpus-per-task", per_task, "tasks on a node", tasks_per_node),
    )
    for whole_option, whole, option, share, what, times in checks:
        if whole is None or share is None or times is None or whole == share * times:
            continue
        raise BadRequest(
            f"--{whole_option} {whole} and --{option} {share} for {times} {what} do not match",
            f"{share} times {times} is {share * times}; use only one of the two.",
        )
