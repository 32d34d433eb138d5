"""What answers about jobs look like."""

from __future__ import annotations

from typing import Literal

import msgspec

from odcd.api.answers.common import Answer

LiveState = Literal["PENDING", "CONFIGURING", "RUNNING", "COMPLETING"]
EndState = Literal[
    "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED",
    "DEADLINE", "BOOT_FAIL",
]  # fmt: skip
LIVE_STATES: tuple[str, ...] = ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING")
END_STATES: tuple[str, ...] = (
    "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED",
    "DEADLINE", "BOOT_FAIL",
)  # fmt: skip


class Cause(Answer):
    """One thing that keeps a job from starting. Only what applies is there beside text."""

    cause: Literal[
        "running_job",
        "planned_job",
        "limit",
        "dependency",
        "node",
        "hold",
        "begin",
        "booking",
        "disk",
        "preempted",
        "start",
    ]
    text: str
    job_id: int | None = None
    limit: str | None = None
    booking_id: int | None = None
    node: str | None = None
    gpus: int | None = None
    until: str | None = None


class Eta(Answer):
    """When a pending job should start: before p10, p50 and p90 in 10, 50 and 90 % of such cases.
    exact: it is protected, and starts at planned_start_at at the latest. p10 and p90 are null where
    nothing but the planned start is known yet."""

    p10: str | None
    p50: str | None
    p90: str | None
    exact: bool


class Preemption(Answer):
    """A job that was ended for another one, or is being ended: the preemptor and its QOS, the rule
    (its QOS preempts victim_qos; the mode), and the cost: what was lost since the start or the last
    checkpoint, in seconds of GPUs, or of CPUs where the job has none."""

    text: str
    attempt: int
    by: int
    qos: str
    victim_qos: str
    mode: Literal["requeue", "cancel"]
    at: str
    ran_s: int
    grace_s: int
    checkpoint_at: str | None = None
    lost_gpu_s: int | None = None
    lost_cpu_s: int | None = None


class GpuUseNow(Answer):
    """When it was looked last; util_ratio: the mean of its GPUs, from 0 to 1; mem_used_mib: of all
    of them together. idle_gpus: those that have rested for as long as GET /v1/idle lists them,
    idle_since: the longest of them."""

    at: str
    util_ratio: float | None
    mem_used_mib: int | None
    idle_gpus: int
    idle_since: str | None


class GpuUse(Answer):
    """What the GPUs of a job did, over all its attempts that ran, in seconds of one GPU: held; seen
    of that; busy, of what was seen, weighed by use; busy_ratio is busy_gpu_s over seen_gpu_s.
    mem_peak_mib: of its fullest GPU. owed: attempts that ended and are not stored yet. gave_up: why
    some was not seen. now: while it runs."""

    source: Literal["prometheus", "nvml"] | None
    held_gpu_s: int
    seen_gpu_s: int
    busy_gpu_s: int
    busy_ratio: float | None
    mem_peak_mib: int | None
    energy_j: int | None
    owed: int
    gave_up: str | None
    now: GpuUseNow | None


class Job(Answer):
    """Times are ISO 8601 in UTC, with Z. The tasks of an array that wait are one job with
    array_task_id null and array_tasks like 3-9%2. time_limit_s null: no limit. end_detail: what the
    executor said of the end. stdout, stderr: file patterns as submitted; of a single job that has
    started, the path that its first node writes. stderr null: it goes where stdout goes.
    node_count: while it waits for a number between that and node_count_max, the least. switches: it
    waits for nodes in at most so many topology blocks, for switches_wait_s (null: for ever).
    checkpoint_at: of a running job, the last it told of. preemption: its last, null when none.
    gpu_use: null where it has no GPUs, or nothing is known of their use."""

    id: int
    array_job_id: int | None
    array_task_id: int | None
    array_tasks: str | None
    name: str
    kind: Literal["batch", "reservation"]
    user: str
    uid: int
    account: str | None
    partition: str
    qos: str | None
    state: LiveState | EndState
    reason: str | None
    why: list[Cause]
    priority: int | None
    nice: int
    submitted_at: str
    eligible_at: str | None
    begin_at: str | None
    planned_start_at: str | None
    eta: Eta | None
    started_at: str | None
    checkpoint_at: str | None
    ended_at: str | None
    time_limit_s: int | None
    node_count: int
    node_count_max: int | None
    switches: int | None
    switches_wait_s: int | None
    gpus_per_node: int
    gpus: int
    gpu_type: str | None
    cpus_per_node: int
    mem_per_node_mib: int
    node_names: list[str]
    attempt: int
    restarts: int
    exit_code: int | None
    signal: int | None
    end_detail: str | None
    preemption: Preemption | None
    dependency: str | None
    array_throttle: int | None
    work_dir: str
    stdout: str | None
    stderr: str | None
    comment: str | None
    booking: str | None
    licences: dict[str, int] | None
    gpu_use: GpuUse | None


class JobList(Answer):
    """next: the cursor of the next page, null on the last. With fields=, jobs have only those."""

    jobs: list[Job]
    next: str | None


class EndedJob(Answer):
    id: int
    array_task_id: int | None
    state: EndState
    exit_code: int | None
    signal: int | None


class Jobs(Answer):
    """next: the cursor of the next page of a long array, null on the last."""

    jobs: list[Job]
    next: str | None


class Ended(Answer):
    """The answer to ?wait=: jobs is empty while not all have ended."""

    jobs: list[EndedJob]
    ended: bool


class Explanation(Answer):
    job_id: int
    state: LiveState | EndState
    reason: str | None
    why: list[Cause]
    planned_start_at: str | None
    eta: Eta | None


class Outcome(msgspec.Struct, kw_only=True):
    """What became of one job; code, message and hint when it was refused. array_tasks: those of a
    waiting array that were cancelled."""

    job_id: int
    array_task_id: int | None
    outcome: str
    array_tasks: str | None = None
    code: str | None = None
    message: str | None = None
    hint: str | None = None


class Outcomes(Answer):
    jobs: list[Outcome]
