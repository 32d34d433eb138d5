"""A member's share of its node, as requests and limits.

CPUs and memory that the planner assigned are requested, so that the scheduler's totals match the
planner's. CPUs may burst to 150 % of the member's share of the node, by GPUs or CPUs. Memory may
not: one member above its share could cause the eviction of another.

Local storage is requested in proportion to the memory, which the planner counts, so the requests on
a node never exceed what it has. A job is limited to its share of the node, by GPUs or CPUs, or to
its --tmp if that is more: a member that fills the disk of its node would end the others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from odcd.executor.kubernetes.inventory import NodeOffer
from odcd.executor.kubernetes.objects import DISK, EFA, GPU, HUGEPAGES
from odcd.records.dispatch import Member

BURST = 1.5
DISK_PART = 0.9
"""The part of a node's local storage that members request; the rest is for other pods."""
EFA_HUGEPAGES_MIB = 5120
LEAST_MEM_MIB = 16
SHM_PART = 2
"""/dev/shm may use this fraction (one half) of the memory limit, and counts against it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    requests: dict[str, str]
    limits: dict[str, str]
    mem_limit_mib: int
    disk_mib: int
    """The limit of local storage; 0: none."""
    efa: int
    hugepages_mib: int

    @property
    def shm_mib(self) -> int:
        return max(1, self.mem_limit_mib // SHM_PART)


def share_of(member: Member, offer: NodeOffer, tmp_mib: int = 0, *, limited: bool = True) -> Share:
    """tmp_mib: the local storage that the job requested. limited: whether its use of that is
    limited."""
    gpus = len(member.gpu_indexes)
    whole = gpus > 0 and gpus == member.node_gpus
    part = max(
        gpus / member.node_gpus if member.node_gpus else 0.0,
        member.cpus / member.node_cpus if member.node_cpus else 0.0,
    )
    burst = math.ceil(BURST * max(member.cpus, part * member.node_cpus))
    mem_limit_mib = member.mem_mib or max(LEAST_MEM_MIB, int(part * member.node_mem_mib))
    devices: dict[str, str] = {}
    efa = offer.efa if whole else 0
    hugepages_mib = EFA_HUGEPAGES_MIB if efa and offer.hugepages_mib >= EFA_HUGEPAGES_MIB else 0
    if gpus:
        devices[GPU] = str(gpus)
    if efa:
        devices[EFA] = str(efa)
    if hugepages_mib:
        devices[HUGEPAGES] = f"{hugepages_mib}Mi"
    memory_part = min(1.0, member.mem_mib / member.node_mem_mib) if member.node_mem_mib else 0.0
    asked_mib = int(DISK_PART * memory_part * offer.disk_mib)
    disk_mib = max(int(part * offer.disk_mib), asked_mib, tmp_mib) if offer.disk_mib else 0
    disk_mib = disk_mib if limited else 0
    return Share(
        requests={
            "cpu": str(member.cpus),
            "memory": f"{member.mem_mib or LEAST_MEM_MIB}Mi",
            **({DISK: f"{asked_mib}Mi"} if asked_mib else {}),
            **devices,
        },
        limits={
            "cpu": str(min(member.node_cpus, max(burst, member.cpus))),
            "memory": f"{mem_limit_mib}Mi",
            **({DISK: f"{disk_mib}Mi"} if disk_mib else {}),
            **devices,
        },
        mem_limit_mib=mem_limit_mib,
        disk_mib=disk_mib,
        efa=efa,
        hugepages_mib=hugepages_mib,
    )
