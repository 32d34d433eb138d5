"""Answers about jobs."""

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
    """One reason why a job has not started. Beside text, only the fields that apply are present."""

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
        "image",
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
    """The expected start of a pending job: in 10, 50 and 90 % of similar cases, a job starts before
    p10, p50 and p90. exact: the job is protected and starts at planned_start_at at the latest. p10
    and p90 are null as long as only the planned start is known."""

    p10: str | None
    p50: str | None
    p90: str | None
    exact: bool


class Preemption(Answer):
    """The preemption of a job: the preemptor and its QOS, the rule (its QOS may preempt victim_qos,
    and the mode), and the cost: the work lost since the start or the last checkpoint, in
    GPU-seconds, or in CPU-seconds if the job has no GPUs."""

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
    """at: the last measurement; util_ratio: the mean of the job's GPUs, from 0 to 1; mem_used_mib:
    their sum. idle_gpus: the GPUs idle for long enough to be listed by GET /v1/idle; idle_since: of
    the one that has been idle longest."""

    at: str
    util_ratio: float | None
    mem_used_mib: int | None
    idle_gpus: int
    idle_since: str | None


class GpuUse(Answer):
    """The GPU usage of a job, over all attempts that ran, in GPU-seconds: held (allocated), seen
    (the measured part of held), busy (seen, weighted by utilisation). busy_ratio is busy_gpu_s
    divided by seen_gpu_s. mem_peak_mib: of the GPU with the highest peak. owed: the number of ended
    attempts not stored yet. gave_up: why some usage was not measured. now: while the job runs."""

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


class Used(Answer):
    """Use by processes: CPU time, the largest resident set of one of them, and the data that they
    read from and wrote to disks."""

    user_cpu_s: float
    system_cpu_s: float
    max_rss_kib: int
    read_kib: int
    written_kib: int


class ResourceUse(Used):
    """The use by the last ended attempt of a job, with its steps; script: without them."""

    script: Used | None


class ArrayProgress(Answer):
    """The tasks of an array. failed: those that ended in any state but COMPLETED."""

    tasks: int
    pending: int
    running: int
    done: int
    failed: int


class Component(Answer):
    """A component of a heterogeneous job. name null: that of the job."""

    name: str | None
    node_count: int
    gpus_per_node: int
    gpu_type: str | None
    cpus_per_node: int
    mem_per_node_mib: int


class Job(Answer):
    """Times are ISO 8601 in UTC, with Z. The pending tasks of an array are one job with
    array_task_id null and array_tasks like 3-9%2, of which the first 100 ranges are shown, then
    "...". time_limit_s null: no limit. end_detail: what the executor reported about the end.
    stdout, stderr: file patterns as submitted; for a single job that has started, the path its
    first node writes. stderr null: it goes where stdout goes.
    node_count: for a pending job with node_count_max, the minimum. switches: the job waits for
    nodes in at most this many topology blocks, for switches_wait_s (null: forever). checkpoint_at:
    the last checkpoint a running job reported. preemption: the last one; null: none.
    components: of a heterogeneous job, whose node_count is that of all of them, and whose
    gpus_per_node, cpus_per_node and mem_per_node_mib are the largest; null: it is not one.
    array_progress: of the array that the job belongs to. gpu_use null: the job has no GPUs, or
    their usage is not known. resource_use: null until an attempt has ended, and if it was not
    measured, as on Kubernetes."""

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
    components: list[Component] | None
    array_progress: ArrayProgress | None
    gpu_use: GpuUse | None
    resource_use: ResourceUse | None


class JobList(Answer):
    """next: the cursor of the next page; null on the last page. With fields=, jobs have only
    these fields."""

    jobs: list[Job]
    next: str | None


class EndedJob(Answer):
    id: int
    array_task_id: int | None
    state: EndState
    exit_code: int | None
    signal: int | None


class Jobs(Answer):
    """next: the cursor of the next page of a long array; null on the last page."""

    jobs: list[Job]
    next: str | None


class Ended(Answer):
    """The answer to ?wait=. jobs is empty until all of them have ended."""

    jobs: list[EndedJob]
    ended: bool


class KeptGpus(Answer):
    """Free GPUs, in total, that are kept for a job with a planned start, until then. nodes: a list
    of nodes such as gpu-[01-02]."""

    text: str
    job_id: int
    nodes: str
    gpus: int
    until: str


class StartsNow(Answer):
    """The largest time limit with which the job would start now, and on which nodes."""

    text: str
    time_limit_s: int
    node_names: list[str]


class Explanation(Answer):
    """eta_scored: how many past predictions the interval of eta is based on; below 20, the interval
    is a guess. starts_now null: no shorter time limit would help, or the job starts anyway."""

    job_id: int
    state: LiveState | EndState
    reason: str | None
    why: list[Cause]
    planned_start_at: str | None
    eta: Eta | None
    eta_scored: int
    kept: list[KeptGpus]
    starts_now: StartsNow | None


class Outcome(msgspec.Struct, kw_only=True):
    """The result for one job. code, message and hint: why it was refused. array_tasks: the pending
    tasks of an array that were cancelled."""

    job_id: int
    array_task_id: int | None
    outcome: str
    array_tasks: str | None = None
    code: str | None = None
    message: str | None = None
    hint: str | None = None


class Outcomes(Answer):
    jobs: list[Outcome]
