"""Job steps: where a step runs, and how it ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

StepKey = tuple[int, int, int]
"""Job, attempt, step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedNode:
    """One node's part of a step. rank: the node within the job."""

    rank: int
    node: str
    tasks: int
    cpus: int
    gpu_indexes: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """A step with its part of the job's allocation."""

    job_id: int
    attempt: int
    step: int
    state: str
    exit_code: int | None
    nodes: tuple[PlacedNode, ...]

    @property
    def key(self) -> StepKey:
        return self.job_id, self.attempt, self.step

    @property
    def task_count(self) -> int:
        return sum(node.tasks for node in self.nodes)

    @property
    def hosts(self) -> list[str]:
        """The node of each task."""
        return [node.node for node in self.nodes for _ in range(node.tasks)]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRefused:
    """The step was not created. busy: other steps use what it needs; starting: the job's first
    node has not started; the other reasons are final. tasks: it has too many; limit: its job has
    too many steps."""

    why: Literal[
        "busy", "starting", "ended", "nodes", "node_list", "processors", "gpus", "memory", "tasks",
        "limit",
    ]  # fmt: skip
    allocated: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StepEnd:
    """The times are seconds since 1970. statuses: the tasks by their wait status. used: see
    odcd.runner.used.Used.numbers; None: it was not measured."""

    job_id: int
    attempt: int
    step: int
    state: str
    exit_code: int
    statuses: dict[str, str]
    started_at: float | None
    ended_at: float | None
    detail: str | None
    used: list[int] | None = None

    @classmethod
    def of(cls, key: StepKey, end: dict[str, Any]) -> StepEnd:
        """end: the runner's record; see odcd.runner.steps.supervisor."""
        ended = end["e"] == "ended"
        return cls(
            job_id=key[0], attempt=key[1], step=key[2],
            state=end["state"] if ended else "NODE_FAIL" if end["e"] == "lost" else "FAILED",
            exit_code=int(end["code"]) if ended else 1, statuses=dict(end.get("statuses") or {}),
            started_at=end.get("started_at"), ended_at=end.get("at"), detail=end.get("detail"),
            used=end.get("used"),
        )  # fmt: skip
