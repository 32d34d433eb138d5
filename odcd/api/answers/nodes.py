"""Answers about nodes."""

from __future__ import annotations

from typing import Literal

from odcd.api.answers.common import Answer


class NodeBooking(Answer):
    """A booking that includes a node, and the occurrence in question. name: #ID if it is for the
    jobs of other users."""

    id: int
    name: str
    kind: Literal["maintenance", "use"]
    starts_at: str
    ends_at: str


class Node(Answer):
    """free_at: when the time limits of all its jobs end. efa_domain: its placement group. topology:
    its network layers, outermost first; the last one is its block. booking: the current one;
    next_booking: the next one."""

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


class NodeGroup(Answer):
    """An elastic group, whose number of nodes odc changes. gpus, cpus, mem_mib: of its next node.
    desired_nodes: how many AWS was, or is to be, asked for; nodes: how many are ready;
    leaving_nodes: how many are being removed. jobs: pending jobs for which nodes were requested, at
    most 100. state waiting: its launches failed, and it is tried again at retry_at."""

    name: str
    gpu_type: str
    gpus: int
    cpus: int
    mem_mib: int
    features: list[str]
    state: Literal["steady", "growing", "shrinking", "waiting"]
    min_nodes: int
    max_nodes: int
    desired_nodes: int
    nodes: int
    leaving_nodes: int
    jobs: list[int]
    cooldown_s: int
    idle_s: int
    boot_s: int
    failures: int
    failure: str | None
    retry_at: str | None


class NodeGroupList(Answer):
    groups: list[NodeGroup]


class Domain(Answer):
    """Nodes that one gang of whole nodes may span. domain: ZONE/GROUP; null: it does not matter."""

    domain: str | None
    nodes: int
    nodes_whole: int


class TypeFragmentation(Answer):
    """Counts nodes that are up. gpus_whole: free GPUs on nodes whose GPUs are all free. fragmented:
    the fraction of free GPUs on other nodes; null if none is free. largest_gang: the maximum number
    of whole nodes for one gang. fits: by GPUs per job, how many such single-node jobs fit."""

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
