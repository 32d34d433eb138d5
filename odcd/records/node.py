"""Nodes: inventory, declared nodes, and the canaries that test quarantined ones."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Literal


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """A short job that tests whether a quarantined node works. number: unique."""

    number: int
    node: str
    gpu_type: str
    gpus: int
    cpus: int
    mem_mib: int
    until: datetime
    """If it has not ended by then, it has failed. The sizes are the whole node's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryEnd:
    """`output`: what the canary printed, or why there is none."""

    number: int
    passed: bool
    output: str


NodeState = Literal["UP", "DRAIN", "DOWN"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeReport:
    """A node in an executor's inventory; name identifies it."""

    name: str
    gpu_type: str
    gpus: int
    cpus: int
    mem_mib: int
    zone: str | None = None
    efa_domain: str | None = None
    """Its placement group. A gang of whole nodes of an EFA type stays in one group of one zone."""
    topology: tuple[str, ...] = ()
    """The network layers it is connected to, outermost first; the last one is its block."""
    features: tuple[str, ...] = ()
    declared: bool = False
    state: NodeState = "UP"
    """The state that the executor's platform reports. A state set by an operator of odc takes
    precedence."""
    reason: str | None = None
    foreign_gpus: int = 0
    """GPUs used by workloads that odc does not run, as are the next two; unavailable until these
    end."""
    foreign_cpus: int = 0
    foreign_mem_mib: int = 0
    tmp_mib: int = 0
    """The disk space for jobs; 0: none, or unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredNode:
    """A node for accounting only, from --node NAME=TYPE:GPUS[xCPUS][@ZONE[/GROUP[/LAYER...]]].

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
    """The size of a whole node of a type; fills in values that a declared node leaves out."""

    gpus: int
    cpus: int
    mem_mib: int
