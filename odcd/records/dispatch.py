"""Dispatches and stops, which go to an executor, and the facts that it reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal

import msgspec


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
    """As stored in the database. Only a starting member may be started: the executor forgets ended
    ones, so it would run them again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskUse:
    """A named disk that is the home of a dev server. claim: the claim in the cluster for the volume
    made for it. first: nothing was ever written to it."""

    claim: str
    name: str
    first: bool


OF_COMPONENT = (
    "components", "name", "ntasks", "ntasks_per_node", "cpus_per_task", "mem_per_cpu_mib",
    "mem_per_gpu_mib", "gpus_spec",
)  # fmt: skip
"""Options that each component of a heterogeneous job has for itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dispatch:
    """One attempt of one job, placed: everything an executor needs to run it.

    script and environment are digests of texts that DispatchStore.get_texts() returns.
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
    tmp_mib: int = 0
    """The disk space that it may use at least, on each node; 0: it did not request any."""
    kind: Literal["batch", "reservation"] = "batch"
    ask: dict[str, object] | None = None
    """For a reservation: the parts of the request that are not in its shape and times."""
    disk: DiskUse | None = None
    """The home of rank 0; None: the home ends with the reservation."""
    personal: str | None = None
    """The claim of the storage that all dev servers of its user share."""
    component_nodes: tuple[int, ...] | None = None
    """Of a heterogeneous job: how many of the members, in order, belong to each component."""

    @property
    def key(self) -> tuple[int, int]:
        return (self.job_id, self.attempt)

    @property
    def log_facts(self) -> dict[str, object]:
        """The job in the log, with its user and its nodes."""
        nodes = ",".join(member.node for member in self.members)
        return {"job_id": self.job_id, "user": self.user, "node": nodes}

    def holds(self, rank: int) -> bool:
        """Whether this member only keeps its node: the script runs on the first node."""
        return rank > 0 and self.options.get("launch") == "first"

    def component(self, number: int) -> Dispatch:
        """One component of a heterogeneous job, as if it were a job: its members, its name and its
        options."""
        counts = self.component_nodes or ()
        first = sum(counts[:number])
        given = self.options.get("components")
        own = given[number] if isinstance(given, list) and number < len(given) else {}
        whole = {name: one for name, one in self.options.items() if name not in OF_COMPONENT}
        return replace(
            self, members=self.members[first : first + counts[number]], component_nodes=None,
            name=own.get("name") or self.name, options={**whole, **own},
        )  # fmt: skip

    @property
    def is_dev_server(self) -> bool:
        return self.kind == "reservation"


DevServerPhase = Literal["scheduling", "init", "image_pull", "ssh", "gang_barrier"]
DEV_SERVER_PHASES: tuple[DevServerPhase, ...] = (
    "scheduling", "init", "image_pull", "ssh", "gang_barrier",
)  # fmt: skip
"""The phases of a dev server's pod until it is ready, in order. Exception: the image is pulled once
the volumes are there, and init ends only after it."""

FactKind = Literal[
    "started", "exited", "lost", "start_failed", "doomed",
    "scheduling", "init", "image_pull", "ssh", "gang_barrier", "restart", "oom",
]  # fmt: skip
ENDS = frozenset({"exited", "lost", "start_failed"})
PROGRESS = frozenset({*DEV_SERVER_PHASES, "restart", "oom"})
Cause = Literal["timeout", "oom", "launch", "unscheduled", "unknown", "deleted"]
"""deleted: its pod was deleted, perhaps by an earlier leader that ended the job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """An event that an executor observed on one member. odc.record_facts records it, idempotently.

    started: its process runs. exited: it ended with exit_code or signal, and holds nothing any
    longer. lost: it is certainly gone, and how it ended is unknown. start_failed: it never ran;
    detail has the reason. doomed: it is about to be lost, because its node is, or because something
    other than odc is ending it. For dev servers also PROGRESS, recorded by odc.record_progress: the
    phase that a member is in; restart, oom: its container ended at that time and restarts in place.
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
    """The node may be the cause: it could not launch the member, lost it, or the member failed
    early."""
    used: tuple[int, ...] | None = None
    """See odcd.runner.used.Used.numbers; None: it was not measured."""
    drains: str | None = None
    """Nodes that must accept no new jobs, as JSON: by rank, the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalDue:
    """A running attempt that must receive its signal before the time limit. ranks: the members that
    have not acknowledged it."""

    job_id: int
    attempt: int
    signal: int
    batch_only: bool
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A running attempt that must end."""

    job_id: int
    attempt: int
    intent: str
    grace_s: float | None = None
    """The time from TERM to KILL; None: the daemon's default."""


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """A notice to a running job's user, for example that its time is nearly over."""

    name: str | None = None
    """A file to write in the user's home folder; no path, at most 255 bytes."""
    text: str = ""
    """The file's content."""
    remove: Sequence[str] = ()
    """Files to remove from the home folder if they exist; `name` is never among them."""
    wall: str | None = None
    """Shown on the job's terminal, both to attached clients and to those who attach later."""
