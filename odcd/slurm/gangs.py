"""The size of a gang (--nodes) and the number of its switches (--switches)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TypeVar

import msgspec

from odcd.errors import BadRequest, NotImplementedYet
from odcd.records.job import ComponentSpec, JobSpec
from odcd.slurm.times import parse_duration

MAX_NODES = 1_000_000
Spec = TypeVar("Spec", JobSpec, ComponentSpec)
SWITCHES_WAIT_S = 300
"""How long a job waits for few switches by default: the default of Slurm's max_switch_wait."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRange:
    """maximum None: exactly `minimum` nodes."""

    minimum: int
    maximum: int | None = None

    def __str__(self) -> str:
        return str(self.minimum) if self.maximum is None else f"{self.minimum}-{self.maximum}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Switches:
    """The most topology blocks that the nodes may be in, until the job has waited wait_s
    (UNLIMITED_S: forever)."""

    max_blocks: int
    wait_s: int = SWITCHES_WAIT_S

    def __str__(self) -> str:
        return f"{self.max_blocks} for {self.wait_s} s"


def parse_nodes(text: str) -> NodeRange:
    """Parse --nodes: 2 or 2-4; 2-2 is the same as 2."""
    hint = f"Accepted: 1 to {MAX_NODES}, or a range such as 2-4."
    if re.fullmatch(r"[0-9,:\s-]*[0-9][,:][0-9,:\s-]*", text):
        raise NotImplementedYet(
            f'"{text[:60]}" lists alternative numbers of nodes, which odc does not support yet',
            "Give one number, or a range such as 2-4.",
        )
    found = re.fullmatch(r"\s*([0-9]{1,7})(?:-([0-9]{1,7}))?\s*", text)
    if found is None:
        raise BadRequest(f'"{text[:60]}" is not a number of nodes', hint)
    minimum, maximum = int(found[1]), int(found[2] or found[1])
    if not (1 <= minimum <= MAX_NODES and 1 <= maximum <= MAX_NODES):
        raise BadRequest(f'"{text[:60]}" is not a number of nodes', hint)
    if maximum < minimum:
        raise BadRequest(f'"{text[:60]}" ends before it begins', "Give the lower number first.")
    return NodeRange(minimum=minimum, maximum=maximum if maximum > minimum else None)


def too_many_nodes(name: str, tasks: int, nodes: int) -> str:
    """Slurm's warning about a request for more nodes than tasks."""
    what = f"can't run {tasks} processes on {nodes} nodes, setting nnodes to {tasks}"
    return f"{name}: warning: {what}\n"


def with_nodes_for_tasks(name: str, spec: JobSpec) -> tuple[JobSpec, str]:
    """The job with at most one node for each task, as Slurm's commands request it; and the
    warning, if that is fewer nodes than asked for."""
    if spec.components:
        made = [_with_nodes(name, one) for one in spec.components]
        return (
            msgspec.structs.replace(spec, components=[one for one, _ in made]),
            "".join(warning for _, warning in made),
        )
    return _with_nodes(name, spec)


def _with_nodes(name: str, spec: Spec) -> tuple[Spec, str]:
    tasks, nodes = spec.ntasks, spec.node_count
    if tasks is None or nodes is None or not 0 < tasks < nodes:
        return spec, ""
    more = {"node_count_max": None} if isinstance(spec, JobSpec) else {}
    fewer = msgspec.structs.replace(
        spec, node_count=tasks, node_list=spec.node_list[:tasks], **more
    )
    return fewer, too_many_nodes(name, tasks, nodes)


def parse_switches(text: str) -> Switches:
    """Parse --switches: N or N@TIME."""
    number, at, wait = text.strip().partition("@")
    if not re.fullmatch("[0-9]{1,7}", number) or not 1 <= int(number) <= MAX_NODES:
        raise BadRequest(
            f'"{text[:60]}" is not a number of switches',
            "Accepted: COUNT or COUNT@TIME, such as 1 or 2@30 (minutes) or 1@UNLIMITED.",
        )
    if not at:
        return Switches(max_blocks=int(number))
    # For a time limit 0 means no limit; here it means no time.
    none = re.fullmatch("[0:-]*0", wait.strip())
    return Switches(max_blocks=int(number), wait_s=0 if none else parse_duration(wait))
