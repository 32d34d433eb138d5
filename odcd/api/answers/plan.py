"""What answers about the plan and the passes that made it look like."""

from __future__ import annotations

from typing import Literal

import msgspec

from odcd.api.answers.common import Answer
from odcd.api.answers.jobs import Eta


class Planned(Answer):
    """A pending job with a planned start, null when no end of what it waits for is in sight.
    detail: what it needs. moved_by_pass: the pass that last changed any of this."""

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
    time_limit_s: int | None
    planned_start_at: str | None
    node_names: list[str]
    detail: str
    moved_by_pass: int | None
    eta: Eta | None


class Plan(Answer):
    """Planned starts as pass_id left them, the first one first."""

    at: str
    pass_id: int | None
    jobs: list[Planned]


class GanttBar(Answer):
    """kind booking: name is the booking's, and nothing of a job is there. gpu_indexes: which GPUs
    of the node, of what runs. likely_end_at: when half of such jobs have ended, null where nothing
    is known of any; ends_at: its time limit, null for none. What is not over does not end before
    now."""

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
    """bars: running jobs, then planned ones, then bookings, each by start."""

    name: str
    gpu_type: str
    gpus: int
    state: Literal["UP", "DRAIN", "DOWN"]
    reason: str | None
    bars: list[GanttBar]


class Gantt(Answer):
    """Nodes by GPU type and name. node_count: of all pages; next: the cursor of the next page, null
    on the last."""

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
    """A planned start that moved; from null: there was none, to null: there is none any more.
    cause: started; overtaken, preemption or overrun (job_id); order (nothing changed but the time);
    or the kind of the event event_id. pass_id null: it was no pass, but that event itself."""

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
    """The jobs whose planned starts are not the same after the one pass and the other."""

    from_: PassName = msgspec.field(name="from")
    to: PassName
    jobs: list[Moved]


class Digests(Answer):
    """SHA-256 of what was noted then and of what comes out now."""

    equal: bool
    then: str
    now: str


class ReadDigests(Digests):
    """Of what a pass read: eight bytes for each part. differs: the parts that are not as then;
    null: there are none, or that pass has no parts."""

    differs: list[Literal["classes", "nodes", "shapes", "limits", "queue", "releases"]] | None


class Versions(Answer):
    """Digests of the planning functions and of the settings they go by."""

    then: str
    now: str


class Difference(Answer):
    """name: a job, for a refusal its shape, for a limit a class of jobs; of these job_id is the
    first that waited with it, and jobs how many did. null: there is none."""

    kind: Literal["start", "planned", "preempt", "refusal", "limit"]
    name: str
    job_id: int | None
    jobs: int | None
    then: str | None
    now: str | None


class Replayed(Answer):
    """A pass decided once more. equal: it read the same and decided the same. chain: its digests
    follow from those of the pass before; null when that one is not kept."""

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
