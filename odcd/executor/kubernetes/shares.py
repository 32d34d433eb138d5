"""A member's share of its node, as requests and limits.

CPUs and memory that the planner assigned are requested, so that the scheduler's totals match the
planner's. CPUs may burst to 150 % of the member's share of the node, by GPUs or CPUs. Memory may
not: one member above its share could cause the eviction of another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from odcd.executor.kubernetes.inventory import NodeOffer
from odcd.executor.kubernetes.objects import EFA, GPU, HUGEPAGES
from odcd.records.dispatch import Member

BURST = 1.5
EFA_HUGEPAGES_MIB = 5120
LEAST_MEM_MIB = 16
SHM_PART = 2
"""/dev/shm may use this fraction (one half) of the memory limit, and counts against it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    requests: dict[str, str]
    limits: dict[str, str]
    mem_limit_mib: int
    efa: int
    hugepages_mib: int

    @property
    def shm_mib(self) -> int:
        return max(1, self.mem_limit_mib // SHM_PART)


def share_of(member: Member, offer: NodeOffer) -> Share:
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
    return Share(
        requests={
            "cpu": str(member.cpus),
            "memory": f"{member.mem_mib or LEAST_MEM_MIB}Mi",
            **devices,
        },
        limits={
            "cpu": str(min(member.node_cpus, max(burst, member.cpus))),
            "memory": f"{mem_limit_mib}Mi",
            **devices,
        },
        mem_limit_mib=mem_limit_mib,
        efa=efa,
        hugepages_mib=hugepages_mib,
    )
