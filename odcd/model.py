"""Frozen records that cross module borders."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

import msgspec

UNLIMITED_S = 2_147_483_647
"""A time limit that never ends, in seconds, as the database keeps it."""

MAX_SCRIPT_BYTES = 4 * 1024 * 1024
MAX_ENVIRONMENT_BYTES = 1024 * 1024
MAX_ARRAY_TASKS = 1_000_000
MAX_ARRAY_RANGES = 10_000
MAX_BATCH_JOBS = 20_000

Count = Annotated[int, msgspec.Meta(ge=1, le=1_000_000)]
Amount = Annotated[int, msgspec.Meta(ge=0, le=2_000_000_000)]
Seconds = Annotated[int, msgspec.Meta(ge=1, le=UNLIMITED_S)]
CONTROLS = r"\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069"
"""Characters that would move the cursor of a terminal, or turn a text around."""
PRINTABLE = rf"^[^{CONTROLS}]*(?![\s\S])"
"""A text that terminals show: one line without escapes. As Python and JSON Schema read it."""

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200, pattern=PRINTABLE)]
Comment = Annotated[str, msgspec.Meta(max_length=4096, pattern=PRINTABLE)]
Image = Annotated[str, msgspec.Meta(min_length=1, max_length=1000, pattern=PRINTABLE)]
Path = Annotated[str, msgspec.Meta(min_length=1, max_length=4096, pattern=PRINTABLE)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """Who speaks, as the server knows it; never what a client says of itself."""

    user: str
    uid: int
    gid: int
    operator: bool


class JobSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One job as a client asks for it: the body of POST /v1/jobs, and what submit-argv parses to.

    None always means "not said". Sizes are per what the name says; the database turns tasks, totals
    and shares into a shape (nodes, and GPUs, CPUs and MiB on each).
    """

    script: str
    """The text of the script, `#!` line included; kept as it was at submit."""
    work_dir: Path
    name: Name | None = None
    kind: Literal["batch"] = "batch"
    args: list[str] = []
    environment: dict[str, str] = {}
    umask: Annotated[int, msgspec.Meta(ge=0, le=0o777)] = 0o022
    stdin: Path | None = None
    stdout: Path | None = None
    stderr: Path | None = None
    open_mode: Literal["append", "truncate"] | None = None

    partitions: list[Name] = []
    """Any of these may run it; empty: the default partition."""
    account: Name | None = None
    qos: Name | None = None
    nice: Annotated[int, msgspec.Meta(ge=-2_147_483_645, le=2_147_483_645)] = 0
    comment: Comment | None = None
    hold: bool = False
    begin_at: datetime | None = None
    deadline_at: datetime | None = None
    time_limit_s: Seconds | None = None
    """UNLIMITED_S for no limit; None: the partition's default."""

    node_count: Count | None = None
    node_count_max: Count | None = None
    """It takes as many nodes as are free when it starts, node_count to node_count_max of them.
    None: node_count."""
    switches: Count | None = None
    """Nodes in at most so many blocks of the network's topology, as long as it waits for it."""
    switches_wait_s: Annotated[int, msgspec.Meta(ge=0, le=UNLIMITED_S)] | None = None
    """Once it has waited so long, its nodes may lie anywhere. UNLIMITED_S: never; None: 300."""
    ntasks: Count | None = None
    ntasks_per_node: Count | None = None
    cpus_per_task: Count | None = None
    cpus_per_gpu: Count | None = None
    gpus: Amount | None = None
    gpus_per_node: Amount | None = None
    gpus_per_task: Amount | None = None
    gpu_type: Name | None = None
    mem_per_node_mib: Amount | None = None
    """0: all of the node's memory."""
    mem_per_cpu_mib: Amount | None = None
    mem_per_gpu_mib: Amount | None = None
    exclusive: bool = False
    constraint: Annotated[str, msgspec.Meta(max_length=1024, pattern=PRINTABLE)] | None = None
    node_list: list[Name] = []
    exclude_nodes: list[Name] = []
    booking: Name | None = None
    """Run inside this booking only."""
    licences: dict[Name, Count] = {}
    """How many of which it holds while it runs."""

    array: Annotated[str, msgspec.Meta(max_length=200_000)] | None = None
    """Task ids as sbatch writes them: 0-9, 1,3,5, 0-100:10, 0-99%4."""
    dependency: Annotated[str, msgspec.Meta(max_length=200_000)] | None = None
    """As sbatch writes it: afterok:12:13,after:14+5 or singleton?afterany:7_2."""
    signal_number: Annotated[int, msgspec.Meta(ge=1, le=64)] | None = None
    signal_before_s: Annotated[int, msgspec.Meta(ge=0, le=65535)] | None = None
    signal_batch: bool = False
    """True: signal the batch shell alone (sbatch's B:)."""
    requeue: bool | None = None
    """May it run again after its node failed? None: yes."""
    submit_host: Annotated[str, msgspec.Meta(max_length=255, pattern=PRINTABLE)] | None = None
    submit_line: Annotated[str, msgspec.Meta(max_length=32768)] | None = None
    spool_output: bool = False
    """Keep the output with the daemon instead of a file in work_dir (odcctl run)."""
    pty: bool = False
    """Give the job a terminal that /attach can speak to."""
    image: Image | None = None
    """Of its container, on Kubernetes, by digest or a fixed tag; None: the cluster's default."""


class ReservationSpec(JobSpec, frozen=True, kw_only=True):
    """A dev server, as a job: made by the daemon, of what its user asked for. No client submits
    one as a job."""

    asked: dict[str, object] = {}
    """What the shape and the times do not tell: disk, image, labels, and so on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """The answer to one job of a submit: its id, or the refusal."""

    job_id: int | None
    code: str | None = None
    message: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One node's part of a dispatch. gpu_indexes: positions on that node, ascending."""

    rank: int
    node: str
    gpu_type: str
    gpu_indexes: tuple[int, ...]
    cpus: int
    mem_mib: int
    node_gpus: int
    node_cpus: int
    node_mem_mib: int
    virtual: bool
    """The node was declared for accounting only: no cgroup limits, its GPUs do not exist."""
    state: Literal["starting", "running", "ended"] = "starting"
    """As the database knows it. Only those starting may be started: of one that has ended the
    executor remembers nothing, so it would run again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskUse:
    """A named disk that a dev server has as its home. claim: in the cluster, of the volume that was
    made for it. first: nothing was ever on it."""

    claim: str
    name: str
    first: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatch:
    """One attempt of one job, placed: all that an executor needs to run it.

    script and environment are digests of texts that Store.texts() gives.
    """

    term: int
    job_id: int
    attempt: int
    array_job_id: int | None
    array_task_id: int | None
    array_min: int | None
    array_max: int | None
    array_count: int | None
    array_step: int | None
    name: str
    user: str
    uid: int
    gid: int
    account: str
    partition: str
    qos: str
    work_dir: str
    umask: int
    stdin: str | None
    stdout: str | None
    stderr: str | None
    open_mode: str
    script_digest: str
    environment_digest: str
    args: tuple[str, ...]
    options: dict[str, object]
    submit_host: str | None
    restarts: int
    started_at: datetime
    ends_at: datetime | None
    """None: no time limit."""
    signal_number: int | None
    signal_before_s: int | None
    signal_batch: bool
    members: tuple[Member, ...]
    booking: str | None = None
    licences: dict[str, int] | None = None
    kind: Literal["batch", "reservation"] = "batch"
    ask: dict[str, object] | None = None
    """Of a reservation: what of it the shape and the times do not tell."""
    disk: DiskUse | None = None
    """The home of rank 0; None: it ends with the reservation."""
    personal: str | None = None
    """The claim of the storage that all dev servers of its user share."""

    @property
    def key(self) -> tuple[int, int]:
        return (self.job_id, self.attempt)

    @property
    def is_box(self) -> bool:
        return self.kind == "reservation"


BoxPhase = Literal["scheduling", "init", "image_pull", "ssh", "gang_barrier"]
BOX_PHASES: tuple[BoxPhase, ...] = ("scheduling", "init", "image_pull", "ssh", "gang_barrier")
"""What a dev server's pod goes through until it is ready, in this order but for the image: it is
pulled when the volumes are there, and the container is made after it."""

FactKind = Literal[
    "started", "exited", "lost", "start_failed",
    "scheduling", "init", "image_pull", "ssh", "gang_barrier", "restart", "oom",
]  # fmt: skip
ENDS = frozenset({"exited", "lost", "start_failed"})
PROGRESS = frozenset({*BOX_PHASES, "restart", "oom"})
Cause = Literal["timeout", "oom", "launch", "unknown"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """What an executor saw of one member. Recorded by odc.record_facts, idempotently.

    started: its process runs. exited: it ended with exit_code or signal, and holds nothing any
    more. lost: it is positively gone and nobody knows how it ended. start_failed: it never ran;
    detail says why. Of dev servers also PROGRESS, recorded by odc.record_progress: the phase that a
    member is in; restart, oom: its container ended at that moment and begins anew in its place.
    """

    job_id: int
    attempt: int
    rank: int
    kind: FactKind
    at: datetime
    exit_code: int | None = None
    signal: int | None = None
    cause: Cause | None = None
    detail: str | None = None
    suspect: bool = False
    """It may have been the node's doing: it could not launch it, lost it, or it failed early."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """A short job that is to show whether a quarantined node works. number: like no other's."""

    number: int
    node: str
    gpu_type: str
    gpus: int
    cpus: int
    mem_mib: int
    until: datetime
    """If it is not over by then, it has failed. The sizes are the whole node's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryEnd:
    """told: what it said, or why it never did."""

    number: int
    passed: bool
    told: str


NodeState = Literal["UP", "DRAIN", "DOWN"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReport:
    """A node as an executor's inventory tells it; name identifies it."""

    name: str
    gpu_type: str
    gpus: int
    cpus: int
    mem_mib: int
    zone: str | None = None
    efa_domain: str | None = None
    """Its placement group; a gang of whole nodes of an EFA type stays in one of one zone."""
    topology: tuple[str, ...] = ()
    """The layers of the network it hangs on, outermost first; the last is its block."""
    features: tuple[str, ...] = ()
    declared: bool = False
    state: NodeState = "UP"
    """As whoever keeps the node sees it; what an operator of odc has set comes before it."""
    reason: str | None = None
    foreign_gpus: int = 0
    """Used, as the next two, by what odc does not run: it is not to be had until that goes."""
    foreign_cpus: int = 0
    foreign_mem_mib: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredNode:
    """A node for accounting only, of --node NAME=TYPE:GPUS[xCPUS][@ZONE[/GROUP[/LAYER...]]].

    cpus None: the type's share. topology: the layers, outermost first; the last is its block.
    """

    name: str
    gpu_type: str
    gpus: int
    cpus: int | None
    zone: str | None = None
    efa_domain: str | None = None
    topology: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuTypeSize:
    """What a whole node of a type has; fills in what a declared node leaves out."""

    gpus: int
    cpus: int
    mem_mib: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A running attempt that the database wants ended."""

    job_id: int
    attempt: int
    intent: str
    grace_s: float | None = None
    """From TERM to KILL; None: the daemon's own."""


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """What a job's user is told while it runs, such as that the time is nearly over."""

    name: str | None = None
    """A file to write in the user's home folder; no path, at most 255 bytes."""
    text: str = ""
    """The file's content."""
    remove: Sequence[str] = ()
    """Files of the home folder that are to go, if they are there; `name` is never among them."""
    wall: str | None = None
    """Shown on the job's terminal, to those attached and to those who attach later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """Which jobs a command is about: one job (7), one array with all its elements (7),
    or elements of one array (7_3, 7_[1-4]); tasks is a PostgreSQL int4multirange text."""

    job_id: int
    tasks: str | None = None
