"""Elastic groups, as AWS and the cluster report them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticGroup:
    """instances: ids, without those that are ending. problem: why its tags cannot be used."""

    name: str
    gpu_type: str
    min_nodes: int
    max_nodes: int
    desired: int
    cooldown_s: float
    idle_s: float
    boot_s: float
    features: Sequence[str] = ()
    zone: str | None = None
    efa_domain: str | None = None
    instances: Sequence[str] = ()
    problem: str | None = None
    failure: str | None = None
    """Why its last launch failed; None: it did not."""
    failed_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticNode:
    """A node of the cluster on an instance of EC2. closed: it has the taint of close_off()."""

    name: str
    instance_id: str
    closed: bool
