"""A step to start, and its tasks: which of them runs on which node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import accumulate

from odcd.records.dispatch import Dispatch, Member
from odcd.records.step import PlacedNode, Placement
from odcd.slurm.commands.srun import StepCall


@dataclass(frozen=True, slots=True, kw_only=True)
class StepOrder:
    """A step to start. dispatch: the running attempt. window: rows and columns of the terminal."""

    dispatch: Dispatch
    placement: Placement
    call: StepCall
    environment: Mapping[str, str]
    work_dir: str
    umask: int
    ends_at: float | None = None
    window: tuple[int, int] | None = None
    has_input: bool = True
    """Whether the client has input for the tasks; otherwise they read /dev/null."""
    inside: bool = False
    """Whether environment and work_dir are those of a process of the job."""

    @property
    def parts(self) -> Mapping[int, StepCall]:
        """The call for each component that the step runs in."""
        return dict(sorted(self.call.parts.items())) or {0: self.call}

    def group_of(self, rank: int) -> int:
        """The component of a heterogeneous job that a member belongs to; else 0."""
        first = 0
        for group, count in enumerate(self.dispatch.component_nodes or ()):
            first += count
            if rank < first:
                return group
        return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTask:
    number: int
    local: int
    at: int
    """The position of its node within the step."""
    node: PlacedNode
    member: Member
    group: int
    call: StepCall
    program: int


def tasks_of(order: StepOrder) -> list[StepTask]:
    members = {member.rank: member for member in order.dispatch.members}
    parts, found = order.parts, list[StepTask]()
    begins = dict.fromkeys(parts, -1)
    programs = dict(zip(parts, accumulate(
        (len(part.programs) for part in parts.values()), initial=0
    ), strict=False))  # fmt: skip
    for at, node in enumerate(order.placement.nodes):
        group = order.group_of(node.rank)
        call = parts[group]
        begins[group] = len(found) if begins[group] < 0 else begins[group]
        for local in range(node.tasks):
            assigned = call.assigned[len(found) - begins[group]] if call.assigned else 0
            found.append(StepTask(
                number=len(found), local=local, at=at, node=node, member=members[node.rank],
                group=group, call=call, program=programs[group] + assigned,
            ))  # fmt: skip
    return found
