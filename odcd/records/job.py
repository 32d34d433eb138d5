"""Jobs as clients request them, and the identity of the client."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Literal

import msgspec

from odcd.records.fields import (
    PRINTABLE,
    UNLIMITED_S,
    Amount,
    Comment,
    Count,
    Image,
    Name,
    Path,
    Seconds,
)
from odcd.records.notification import MailAddress, MailType

MAX_SCRIPT_BYTES = 4 * 1024 * 1024
MAX_ENVIRONMENT_BYTES = 1024 * 1024
MAX_ARRAY_TASKS = 1_000_000
MAX_ARRAY_RANGES = 10_000
MAX_REQUEST_RANGES = 20_000
"""Of all arrays, or of all selectors, of one request together."""
MAX_BATCH_JOBS = 20_000
"""Of one request. Each component of a heterogeneous job counts."""
MAX_COMPONENTS = 128
"""Of a heterogeneous job."""
_RANGE = re.compile(r"\{\[(\d+),(\d+)\)\}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The caller, as the server identified it; never what a client claims."""

    user: str
    uid: int
    gid: int
    operator: bool


class ComponentSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The request of one component of a heterogeneous job; the fields are those of JobSpec.

    name: as Slurm's commands show it; None: that of the job.
    """

    name: Name | None = None
    node_count: Count | None = None
    ntasks: Count | None = None
    ntasks_per_node: Count | None = None
    cpus_per_task: Count | None = None
    cpus_per_gpu: Count | None = None
    gpus: Amount | None = None
    gpus_per_node: Amount | None = None
    gpus_per_task: Amount | None = None
    gpu_type: Name | None = None
    mem_per_node_mib: Amount | None = None
    mem_per_cpu_mib: Amount | None = None
    mem_per_gpu_mib: Amount | None = None
    tmp_mib: Amount | None = None
    exclusive: bool = False
    constraint: Annotated[str, msgspec.Meta(max_length=1024, pattern=PRINTABLE)] | None = None
    node_list: list[Name] = []
    exclude_nodes: list[Name] = []
    licences: dict[Name, Count] = {}


class JobSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One job as a client requests it: the body of POST /v1/jobs, and the result of parsing
    submit-argv.

    None always means "not given". Names state what a size refers to. The database turns tasks,
    totals and shares into a shape (nodes, and GPUs, CPUs and MiB on each).
    """

    script: str
    """The text of the script, including the `#!` line; kept as it was at submit."""
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
    """The job takes as many nodes as are free when it starts, from node_count to this number. None:
    node_count."""
    switches: Count | None = None
    """The maximum number of network blocks its nodes may span, until switches_wait_s has passed."""
    switches_wait_s: Annotated[int, msgspec.Meta(ge=0, le=UNLIMITED_S)] | None = None
    """After waiting this long, its nodes may be anywhere. UNLIMITED_S: never; None: 300."""
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
    tmp_mib: Amount | None = None
    """The disk space that each of its nodes must have."""
    exclusive: bool = False
    constraint: Annotated[str, msgspec.Meta(max_length=1024, pattern=PRINTABLE)] | None = None
    node_list: list[Name] = []
    exclude_nodes: list[Name] = []
    booking: Name | None = None
    """Run inside this booking only."""
    licences: dict[Name, Count] = {}
    """How many of each licence it holds while it runs."""

    components: Annotated[list[ComponentSpec], msgspec.Meta(max_length=MAX_COMPONENTS)] = []
    """The parts of a heterogeneous job, which start and end together; the script runs on the first
    node of the first one. With them, the job itself asks for no nodes, tasks, GPUs, CPUs or
    memory."""

    array: Annotated[str, msgspec.Meta(max_length=200_000)] | None = None
    """Task ids in sbatch's syntax: 0-9, 1,3,5, 0-100:10, 0-99%4."""
    dependency: Annotated[str, msgspec.Meta(max_length=200_000)] | None = None
    """In sbatch's syntax: afterok:12:13,after:14+5 or singleton?afterany:7_2."""
    signal_number: Annotated[int, msgspec.Meta(ge=1, le=64)] | None = None
    signal_before_s: Annotated[int, msgspec.Meta(ge=0, le=65535)] | None = None
    signal_batch: bool = False
    """True: signal only the batch shell (sbatch's B:)."""
    requeue: bool | None = None
    """Whether it may run again after its node failed; None: yes."""
    mail_types: Annotated[list[MailType], msgspec.Meta(max_length=20)] = []
    """When to send mail, as in sbatch's --mail-type. Without ODC_SMTP_HOST, none is sent."""
    mail_user: MailAddress | None = None
    submit_host: Annotated[str, msgspec.Meta(max_length=255, pattern=PRINTABLE)] | None = None
    submit_line: Annotated[str, msgspec.Meta(max_length=32768)] | None = None
    spool_output: bool = False
    """Keep the output with the daemon instead of a file in work_dir (odcctl run)."""
    pty: bool = False
    """Give the job a terminal that /attach can connect to."""
    launch: Literal["first", "all"] = "first"
    """Where the script runs: on the first node, or on every node."""
    image: Image | None = None
    """The container image on Kubernetes, by digest or a fixed tag; None: the cluster's default."""

    @property
    def job_count(self) -> int:
        """Each component of a heterogeneous job counts as a job: it costs as much."""
        return len(self.components) or 1

    @property
    def runs_on_first_node(self) -> bool:
        """Whether it may have several nodes, and its script runs on the first one only.
        Jobs of earlier releases do not say so: their scripts run on every node."""
        if self.components:
            return True
        counts = (self.node_count, self.node_count_max, self.ntasks, self.gpus, len(self.node_list))
        one = self.node_count == 1 and self.node_count_max is None
        several = not one and any(count is not None and count > 1 for count in counts)
        return self.launch == "first" and several


class ReservationSpec(JobSpec, frozen=True, kw_only=True):
    """A dev server as a job. The daemon makes it from a user's request; clients cannot submit one
    as a job."""

    details: dict[str, object] = {}
    """The parts of the request that are not in the shape and times: disk, image, labels, and so
    on."""

    @property
    def runs_on_first_node(self) -> bool:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """The answer for one submitted job: its id, or the refusal."""

    job_id: int | None
    code: str | None = None
    message: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Selector:
    """The jobs that a command is about: one job (7), one array with all its elements (7), or
    elements of one array (7_3, 7_[1-4]). tasks is the text of a PostgreSQL int4multirange."""

    job_id: int
    tasks: str | None = None

    @property
    def is_one_task(self) -> bool:
        """Whether tasks is a single number; [3,4) is 3."""
        found = _RANGE.fullmatch(self.tasks or "")
        return found is not None and int(found[2]) - int(found[1]) == 1
