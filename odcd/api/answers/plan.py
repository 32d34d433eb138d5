"""Answers about the plan and the scheduling passes that made it."""

from __future__ import annotations

from typing import Literal

import msgspec

from odcd.api.answers.common import Answer
from odcd.api.answers.jobs import Component, Eta


class Planned(Answer):
    """A pending job and its planned start; null if no end of what it waits for is in sight. detail:
    what it needs. moved_by_pass: the last pass that changed any of this. components: as in Job."""

    id: int
    array_job_id: int | None
    array_task_id: int | None
    array_tasks: str | None
    name: str
    user: str
    account: str | None
    partition: str | None
    node_count: int
    node_count_max: int | None
    gpus_per_node: int
    gpu_type: str | None
    components: list[Component] | None
    time_limit_s: int | None
    planned_start_at: str | None
    node_names: list[str]
    detail: str
    moved_by_pass: int | None
    eta: Eta | None


class Plan(Answer):
    """Planned starts after pass pass_id, earliest first."""

    at: str
    pass_id: int | None
    jobs: list[Planned]


class GanttBar(Answer):
    """kind booking: name is the booking's name (#ID if it is for the jobs of other users), and the
    job fields are empty. gpu_indexes: the GPUs that a running job uses on the node. likely_end_at:
    when half of similar jobs have ended; null if nothing is known about any. ends_at: the end of
    the time limit; null: no limit. For a job that still runs, neither is in the past."""

    kind: Literal["running", "planned", "booking"]
    job_id: int | None
    array_job_id: int | None
    array_task_id: int | None
    array_tasks: str | None
    name: str
    user: str | None
    gpus: int
    gpu_indexes: list[int]
    starts_at: str
    likely_end_at: str | None
    ends_at: str | None


class GanttNode(Answer):
    """bars: running jobs, then planned ones, then bookings, each ordered by start."""

    name: str
    gpu_type: str
    gpus: int
    state: Literal["UP", "DRAIN", "DOWN"]
    reason: str | None
    bars: list[GanttBar]


class Gantt(Answer):
    """Nodes by GPU type and name. node_count: on all pages. next: the cursor of the next page; null
    on the last page."""

    at: str
    from_: str = msgspec.field(name="from")
    to: str
    node_count: int
    next: int | None
    nodes: list[GanttNode]


class PassName(Answer):
    pass_id: int
    at: str


class Move(Answer):
    """A change of a planned start. from null: it had none before; to null: it has none now. cause:
    started; overtaken, preemption or overrun (by job_id); order (only time passed); or the kind of
    the event event_id. pass_id null: the event itself changed it, not a pass."""

    pass_id: int | None
    at: str
    from_: str | None = msgspec.field(name="from")
    to: str | None
    cause: str
    event_id: int | None
    job_id: int | None
    text: str


class Moved(Answer):
    id: int
    name: str
    user: str
    change: Literal["later", "earlier", "new", "started", "gone"]
    from_: str | None = msgspec.field(name="from")
    to: str | None
    moves: list[Move]


class PlanDiff(Answer):
    """The jobs whose planned starts differ between the two passes."""

    from_: PassName = msgspec.field(name="from")
    to: PassName
    jobs: list[Moved]


class Digests(Answer):
    """SHA-256 of what was recorded then, and of the result now."""

    equal: bool
    then: str
    now: str


class ReadDigests(Digests):
    """Digests of what a pass read, eight bytes per part. differs: the parts that differ from then;
    null: none differ, or the pass recorded no parts."""

    differs: list[Literal["classes", "nodes", "shapes", "limits", "queue", "releases"]] | None


class Versions(Answer):
    """Digests of the planning functions and of the settings they use."""

    then: str
    now: str


class Difference(Answer):
    """name: a job; for a refusal its shape, for a limit a class of jobs. For these, job_id is the
    first job that waited with it, and jobs is their number. null: there is none."""

    kind: Literal["start", "planned", "preempt", "refusal", "limit"]
    name: str
    job_id: int | None
    jobs: int | None
    then: str | None
    now: str | None


class Replayed(Answer):
    """A replayed pass. equal: it read the same input and made the same decisions. chain: its
    digests follow from those of the previous pass; null if that pass is no longer kept."""

    pass_id: int
    at: str
    term: int
    policy: Versions
    input: ReadDigests
    output: Digests
    chain: bool | None
    looked: int
    starts: int
    planned: int
    equal: bool
    differences: list[Difference]
