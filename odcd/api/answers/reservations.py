"""What /v1/reservations, /v1/availability and /v1/cluster/use answer."""

from __future__ import annotations

from typing import Literal

import msgspec

from odcd.api.answers.common import Answer
from odcd.api.answers.jobs import EndState, Eta, LiveState


class SentWarning(Answer):
    minutes: int
    at: str


class PhaseTime(Answer):
    """took_s null: it goes on."""

    phase: str
    at: str
    took_s: float | None


class Happened(Answer):
    at: str
    text: str


class Reservation(Answer):
    """A dev server: a job of kind reservation, in its users' words. Times are ISO 8601 in UTC, with
    Z. status: its state as users know it; while it is being ended, the one it will end with.
    message: what it does now, or how it ended. storage: what its home folder is: a named disk, the
    user's own on that machine, or one that ends with it. duration_s: as asked; expires_at: with
    what it was extended by. queue_position: within its GPU type; null when it does not wait or
    nobody can say.
    disk_state: busy: others have it, or it is being saved; free, creating, in-use, backing-up: as
    the reservation goes on; saved: all that it wrote is in a snapshot; unused: it wrote nothing;
    trouble: an operator must look; lost.
    connect: how `odcctl connect` gets in; null: not now, or not the one who asks.
    jupyter: how Jupyter Lab is in an active one; null: off. jupyter_url: with its token, for its
    owner and operators, where `odcctl connect ID --jupyter` listens.
    ssh_addresses: by rank, address and port of the nodes that lead to SSH, too, if this cluster
    has that; without the address when the node has none.
    host_keys: what its SSH server shows, as lines of known_hosts without the host. oom_count: how
    often it ran out of memory and began anew. idle_s: for how long nobody has used it, where its
    QOS looks; null: it is in use, or that is not known. build: the digest that its image is built
    of, for its owner and operators. history: of a single one."""

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
    oom_count: int
    last_oom_at: str | None
    labels: dict[str, str]
    comment: str | None
    phases: list[PhaseTime]
    history: list[Happened] | None


class ReservationList(Answer):
    reservations: list[Reservation]


class Delayed(Answer):
    """A planned start that comes later; to null: it has none any more."""

    job_id: int
    name: str
    user: str
    from_: str = msgspec.field(name="from")
    to: str | None


class Extension(Answer):
    """until: the latest end there can be."""

    id: int
    expires_at: str
    extended_s: int
    extensions: int
    until: str
    delays: list[Delayed]
    dry_run: bool


class Wait(Answer):
    """When so many GPUs, of so many nodes, could be had. start_at null: not in sight, or refused,
    and why."""

    gpus: int
    nodes: int
    start_at: str | None
    wait_s: int | None
    refused: str | None


class Availability(Answer):
    """Of one GPU type. total, free: GPUs of nodes that are up; of types without GPUs, nodes.
    max_reservable: the most that one reservation could have now. running, queued: jobs of all
    kinds. cpus_per_node, mem_per_node_mib: of its smallest node. maintenance: why, and until when,
    all its nodes are booked."""

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


class BoxCount(Answer):
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
    """gpus, total: of nodes that are up."""

    at: str
    gpus: int
    gpus_free: int
    gpus_used: int
    nodes: int
    nodes_up: int
    reservations: BoxCount
    jobs: JobCount
    types: list[TypeCount]
