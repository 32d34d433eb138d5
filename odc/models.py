"""Answers of the daemon, and jobs as it accepts them: the schemas of /openapi.json.

tests/odc/test_contract.py compares them with that document, which describes each field. Times are
aware datetimes in UTC, and names that end in _s are seconds. Unknown fields of an answer are
ignored, so a newer daemon may send more.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec


class Model(msgspec.Struct, frozen=True, kw_only=True):
    pass


class Cause(Model, frozen=True):
    """One reason why a job has not started: a sentence, and the fields that apply."""

    cause: str
    text: str
    job_id: int | None = None
    limit: str | None = None
    booking_id: int | None = None
    node: str | None = None
    gpus: int | None = None
    until: datetime | None = None


class Eta(Model, frozen=True):
    p10: datetime | None
    p50: datetime | None
    p90: datetime | None
    exact: bool


class ArrayProgress(Model, frozen=True):
    tasks: int
    pending: int
    running: int
    done: int
    failed: int


class Component(Model, frozen=True):
    """A component of a heterogeneous job. name None: that of the job."""

    name: str | None
    node_count: int
    gpus_per_node: int
    gpu_type: str | None
    cpus_per_node: int
    mem_per_node_mib: int


class Job(Model, frozen=True):
    """The waiting tasks of an array are one job with array_tasks; see the HTTP API."""

    id: int
    array_job_id: int | None
    array_task_id: int | None
    array_tasks: str | None
    name: str
    kind: str
    user: str
    uid: int
    account: str | None
    partition: str
    qos: str | None
    state: str
    reason: str | None
    why: list[Cause]
    priority: int | None
    nice: int
    submitted_at: datetime
    eligible_at: datetime | None
    begin_at: datetime | None
    planned_start_at: datetime | None
    eta: Eta | None
    started_at: datetime | None
    checkpoint_at: datetime | None
    ended_at: datetime | None
    time_limit_s: int | None
    node_count: int
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
    dependency: str | None
    work_dir: str
    stdout: str | None
    stderr: str | None
    comment: str | None
    components: list[Component] | None
    """Of a heterogeneous job, whose node_count is that of all of them."""
    array_progress: ArrayProgress | None

    @property
    def is_ended(self) -> bool:
        return self.state not in ("PENDING", "CONFIGURING", "RUNNING", "COMPLETING")


class JobList(Model, frozen=True):
    jobs: list[Job]
    next: str | None


class Jobs(Model, frozen=True):
    jobs: list[Job]
    next: str | None


class EndedJob(Model, frozen=True):
    """How one job, or one task of an array, ended."""

    id: int
    array_task_id: int | None
    state: str
    exit_code: int | None
    signal: int | None

    @property
    def is_ok(self) -> bool:
        return self.state == "COMPLETED"


class Ended(Model, frozen=True):
    jobs: list[EndedJob]
    ended: bool


class KeptGpus(Model, frozen=True):
    text: str
    job_id: int
    nodes: str
    gpus: int
    until: datetime


class StartsNow(Model, frozen=True):
    text: str
    time_limit_s: int
    node_names: list[str]


class Explanation(Model, frozen=True):
    job_id: int
    state: str
    reason: str | None
    why: list[Cause]
    planned_start_at: datetime | None
    eta: Eta | None
    eta_scored: int
    kept: list[KeptGpus]
    starts_now: StartsNow | None

    def __str__(self) -> str:
        """The reasons as lines of text."""
        return "\n".join(cause.text for cause in self.why)


class Outcome(Model, frozen=True):
    """The result of a change of one job. outcome "refused": code, message and hint say why."""

    job_id: int
    array_task_id: int | None
    outcome: str
    array_tasks: str | None = None
    code: str | None = None
    message: str | None = None
    hint: str | None = None


class Outcomes(Model, frozen=True):
    jobs: list[Outcome]


class SubmittedJob(Model, frozen=True):
    id: int


class SubmittedBatch(Model, frozen=True):
    ids: list[int]


class SubmittedArgv(Model, frozen=True):
    id: int
    warnings: list[str]


class Preview(Model, frozen=True):
    """Where and when a job would start; start_at None: not planned yet, and reason says why."""

    text: str
    node_count: int | None = None
    gpus_per_node: int | None = None
    gpu_type: str | None = None
    start_at: datetime | None = None
    node_names: list[str] = []
    reason: str | None = None


class TestOnly(Model, frozen=True):
    __test__ = False  # not a test of pytest
    test_only: Preview
    warnings: list[str]


class Node(Model, frozen=True):
    name: str
    gpu_type: str | None
    state: str
    gpus: int
    gpus_used: int
    cpus: int
    cpus_used: int
    mem_mib: int
    mem_used_mib: int
    partitions: list[str]
    features: list[str]
    reason: str | None


class NodeList(Model, frozen=True):
    nodes: list[Node]


class Event(Model, frozen=True):
    """One change; docs/reference/events.md lists the kinds and their details."""

    id: int
    kind: str
    actor: str
    at: datetime | None = None
    job_id: int | None = None
    array_job_id: int | None = None
    array_task_id: int | None = None
    node: str | None = None
    detail: dict[str, Any] = {}


class JobSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A job for Client.submit_spec. The time limit, the partition and the size have the defaults of
    the cluster."""

    script: str
    work_dir: str
    name: str | None = None
    args: list[str] = []
    environment: dict[str, str] = {}
    umask: int = 0o022
    stdin: str | None = None
    stdout: str | None = None
    stderr: str | None = None
    partitions: list[str] = []
    account: str | None = None
    qos: str | None = None
    nice: int = 0
    comment: str | None = None
    hold: bool = False
    begin_at: datetime | None = None
    deadline_at: datetime | None = None
    time_limit_s: int | None = None
    node_count: int | None = None
    node_count_max: int | None = None
    ntasks: int | None = None
    ntasks_per_node: int | None = None
    cpus_per_task: int | None = None
    cpus_per_gpu: int | None = None
    gpus: int | None = None
    gpus_per_node: int | None = None
    gpus_per_task: int | None = None
    gpu_type: str | None = None
    mem_per_node_mib: int | None = None
    mem_per_cpu_mib: int | None = None
    mem_per_gpu_mib: int | None = None
    exclusive: bool = False
    constraint: str | None = None
    node_list: list[str] = []
    exclude_nodes: list[str] = []
    booking: str | None = None
    licences: dict[str, int] = {}
    array: str | None = None
    dependency: str | None = None
    requeue: bool | None = None
    launch: str = "first"
    image: str | None = None
