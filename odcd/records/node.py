"""Nodes: inventory, declared nodes, and the canaries that test quarantined ones."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal


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
