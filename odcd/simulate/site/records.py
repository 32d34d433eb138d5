"""A site as a replay needs it: settings, nodes, and the jobs of a window.

All times are whole seconds since the start of the window, so jobs submitted before it have negative
ones. Records are encoded as JSON, in files to share and between processes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

FORMAT = 1
UNLIMITED_S = 2_147_483_647
"""A job without a time limit."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One attempt. end_s: None while it runs at the end of the window."""

    start_s: int
    end_s: int | None
    nodes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extension:
    """A running job got a longer time limit, at_s after its start."""

    at_s: int
    limit_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A job, or one task of an array.

    spans: its attempts, without those that ended by preemption, because the replay preempts by
    itself; if all did, the longest. Every one but the last was followed by a requeue.
    first_start_s: its real first start, of any attempt. cancelled_s: when it ended without a start.
    """

    number: int | None
    spans: tuple[Span, ...]
    first_start_s: int | None = None
    cancelled_s: int | None = None
    extensions: tuple[Extension, ...] = ()
    preempted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One condition of a dependency; target_id is a job of the window."""

    kind: str
    target_id: int | None = None
    target_task: int | None = None
    delay_s: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteJob:
    """A job as it was submitted. ready_s: when its hold or begin time was over."""

    id: int
    name: str
    user: str
    uid: int
    account_id: int
    qos_id: int
    shape_id: int
    nice: int
    submit_s: int
    ready_s: int
    limit_s: int
    requeue: bool
    dev_server: bool
    throttle: int | None = None
    any_term: bool = False
    terms: tuple[Term, ...] = ()
    tasks: tuple[Task, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChange:
    """A node began or stopped to accept jobs."""

    at_s: int
    node: str
    up: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """Jobs of the window that a replay does not submit."""

    never_ready: int = 0
    """Held, or waiting for a dependency or begin time, until they were cancelled or the window
    ended."""
    unstarted_tasks: int = 0
    """Ranges of array tasks that were cancelled before they started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """tables: rows of odc's tables, by table name. changes: node states, those before the window at
    0. length_s: of the window."""

    format: int = FORMAT
    name: str
    start: datetime
    length_s: int
    tables: dict[str, list[Row]]
    changes: tuple[NodeChange, ...] = ()
    jobs: tuple[SiteJob, ...] = ()
    left_out: LeftOut = field(default_factory=LeftOut)
