"""Answers of /v1/reservations, /v1/availability and /v1/cluster/use."""

from __future__ import annotations

from typing import Literal

import msgspec

from odcd.api.answers.common import Answer
from odcd.api.answers.jobs import EndState, Eta, LiveState


class SentWarning(Answer):
    minutes: int
    at: str


class PhaseTime(Answer):
    """took_s null: the phase is not over."""

    phase: str
    at: str
    took_s: float | None


class Happened(Answer):
    at: str
    text: str


class Reservation(Answer):
    """A dev server: a job of kind reservation, in users' words. Times are ISO 8601 in UTC, with Z.
    status: the state that users see; while the reservation is being ended, the one it will end
    with. message: what it is doing now, or how it ended. storage: where its home folder is: on a
    named disk, the user's own home on that machine, or temporary and deleted with the reservation.
    duration_s: as requested; expires_at: includes extensions. queue_position: within its GPU type;
    null: it does not wait, or the position is not known.
    disk_state: busy: another job uses the disk, or it is being saved; free, creating, in-use,
    backing-up: in this order over the life of the reservation; saved: all data is in a snapshot;
    unused: nothing was written; trouble: an operator must check it; lost.
    connect: how `odcctl connect` connects; null: not now, or not for this caller.
    jupyter: the state of Jupyter Lab in an active reservation; null: off. jupyter_url: includes the
    token, for the owner and operators; `odcctl connect ID --jupyter` listens there.
    ssh_addresses: by rank, addresses and ports of nodes that also forward to SSH, if the cluster
    supports this; without the address if the node has none.
    host_keys: the host keys of its SSH server, as known_hosts lines without the host.
    node_notice: why its nodes may become unavailable: drained, or maintenance; node_notice_until:
    when the first may be gone; null: not known. oom_count:
    how often it ran out of memory and restarted. idle_s: how long no one has used it, if its QOS
    checks this; null: in use, or not known. build: the digest of its image's build context, for
    the owner and operators. history: only when a single reservation is requested."""

    id: int
    name: str
    user: str
    uid: int
    account: str | None
    partition: str | None
    qos: str | None
    status: Literal["pending", "queued", "preparing", "active", "expired", "cancelled", "failed"]
    state: LiveState | EndState
    reason: str | None
    phase: str | None
    phase_at: str | None
    message: str
    gpus: int
    gpu_type: str | None
    node_count: int
    gpus_per_node: int
    duration_s: int
    created_at: str
    launched_at: str | None
    expires_at: str | None
    ended_at: str | None
    extensions: int
    extended_s: int
    queue_position: int | None
    planned_start_at: str | None
    eta: Eta | None
    node_names: list[str]
    attempt: int | None
    disk_name: str | None
    disk_state: (
        Literal[
            "busy", "free", "creating", "in-use", "backing-up", "saved", "unused", "trouble", "lost"
        ]
        | None
    )
    storage: Literal["disk", "home", "temporary"]
    image: str | None
    jupyter: Literal["starting", "running", "ending", "failed"] | None
    jupyter_error: str | None
    build: str | None
    jupyter_url: str | None
    ssh_command: str | None
    ssh_addresses: list[str]
    connect: Literal["terminal", "ssh"] | None
    host_keys: list[str]
    github_user: str | None
    secondary_users: list[str]
    failure_reason: str | None
    warnings: list[SentWarning]
    idle_s: int | None
    node_notice: str | None
    node_notice_until: str | None
    oom_count: int
    last_oom_at: str | None
    labels: dict[str, str]
    comment: str | None
    phases: list[PhaseTime]
    history: list[Happened] | None


class ReservationList(Answer):
    reservations: list[Reservation]


class Delayed(Answer):
    """A planned start that moves to a later time; to null: it is lost."""

    job_id: int
    name: str
    user: str
    from_: str = msgspec.field(name="from")
    to: str | None


class Extension(Answer):
    """until: the latest possible end."""

    id: int
    expires_at: str
    extended_s: int
    extensions: int
    until: str
    delays: list[Delayed]
    dry_run: bool


class Wait(Answer):
    """When this many GPUs, on this many nodes, would be available. start_at null: no start is in
    sight, for Slurm's reason given (a limit, for example), or the request is refused with the
    text given."""

    gpus: int
    nodes: int
    start_at: str | None
    wait_s: int | None
    refused: str | None
    reason: str | None = None


class Availability(Answer):
    """The availability of one GPU type. total, free: GPUs of nodes that are up; for types without
    GPUs, nodes. max_reservable: the largest reservation that could start now. running, queued: jobs
    of all kinds. cpus_per_node, mem_per_node_mib: of the smallest node. maintenance: why and until
    when all its nodes are booked."""

    gpu_type: str
    label: str
    gpu_mem_mib: int | None
    gpus_per_node: int
    cpus_per_node: int
    mem_per_node_mib: int
    nodes: int
    nodes_up: int
    free_nodes: int
    total: int
    free: int
    max_on_one_node: int
    max_reservable: int
    running: int
    queued: int
    maintenance: str | None
    waits: list[Wait]


class AvailabilityList(Answer):
    at: str
    types: list[Availability]


class ReservationCount(Answer):
    active: int
    preparing: int
    queued: int


class JobCount(Answer):
    running: int
    pending: int


class TypeCount(Answer):
    gpu_type: str
    total: int
    free: int
    active: int
    queued: int


class ClusterCount(Answer):
    """gpus, total: GPUs of nodes that are up."""

    at: str
    gpus: int
    gpus_free: int
    gpus_used: int
    nodes: int
    nodes_up: int
    reservations: ReservationCount
    jobs: JobCount
    types: list[TypeCount]
