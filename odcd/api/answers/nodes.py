"""What answers about nodes look like."""

from __future__ import annotations

from typing import Literal

from odcd.api.answers.common import Answer


class NodeBooking(Answer):
    """A booking that has a node, and the occurrence meant."""

    id: int
    name: str
    kind: Literal["maintenance", "use"]
    starts_at: str
    ends_at: str


class Node(Answer):
    """free_at: when the time limits of all its jobs are over. efa_domain: its placement group;
    topology: the layers of the network it hangs on, outermost first, the last its block. booking:
    that has it now; next_booking: that has it next."""

    name: str
    gpu_type: str
    state: Literal["IDLE", "MIXED", "ALLOCATED", "DRAIN", "DRAINING", "DOWN"]
    gpus: int
    gpus_used: int
    cpus: int
    cpus_used: int
    mem_mib: int
    mem_used_mib: int
    zone: str | None
    efa_domain: str | None
    topology: list[str]
    features: list[str]
    partitions: list[str]
    reason: str | None
    reason_by: str | None
    state_at: str | None
    declared: bool
    jobs: list[int]
    free_at: str | None
    booking: NodeBooking | None
    next_booking: NodeBooking | None


class NodeList(Answer):
    nodes: list[Node]


class Domain(Answer):
    """Where a gang of whole nodes stays. domain: ZONE/GROUP; null where that does not matter."""

    domain: str | None
    nodes: int
    nodes_whole: int


class TypeFragmentation(Answer):
    """Of nodes that are up. gpus_whole: free on nodes with all GPUs free; fragmented: the share of
    the free ones that lie elsewhere, null when none is free. largest_gang: whole nodes that one
    gang could take. fits: how many jobs with so many GPUs on one node."""

    gpu_type: str
    nodes: int
    gpus: int
    gpus_free: int
    gpus_whole: int
    fragmented: float | None
    nodes_whole: int
    largest_gang: int
    fits: dict[str, int]
    domains: list[Domain]


class Fragmentation(Answer):
    types: list[TypeFragmentation]
