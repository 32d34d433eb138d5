"""Protocols of AWS and of the cluster for the leader's loop, and the tags of groups. Implemented in
odcd.aws.groups and odcd.executor.kubernetes.elastic_nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from odcd.records.elastic import ElasticGroup, ElasticNode

CLUSTER, ELASTIC = "odc.dev/cluster", "odc.dev/elastic"
TYPE = "GpuType"
FEATURES = "odc.dev/features"
DURATIONS = {"cooldown_s": 60.0, "idle_s": 600.0, "boot_s": 300.0}
"""Tags odc.dev/cooldown-s and so on, in seconds, and their defaults."""
MAX_S = 7 * 86_400.0


class ElasticCloud(Protocol):
    """Every call raises CloudBusy or CloudRefused (odcd.disks.cloud) and can be repeated."""

    async def groups(self) -> list[ElasticGroup]:
        """All elastic groups of the cluster; never a part of them."""
        ...

    async def resize(self, group: str, size: int) -> None: ...

    async def terminate(self, instance_id: str) -> None:
        """End the instance; its group gets no other one for it."""
        ...


class ElasticNodes(Protocol):
    """Every call raises RunnerDown or ApiRefused, and can be repeated."""

    async def nodes(self) -> list[ElasticNode]: ...

    async def close_off(self, name: str) -> None:
        """Taint the node, so that the cluster places no pods on it."""
        ...

    async def reopen(self, name: str) -> None: ...

    async def pods(self, name: str) -> list[str]:
        """Pods that would be lost with the node, as namespace/name."""
        ...


def read_tags(tags: Mapping[str, str]) -> tuple[dict[str, float], list[str], str | None]:
    """The durations and features in a group's tags, and what is wrong with the tags."""
    problem: str | None = None
    durations: dict[str, float] = {}
    for name, default in DURATIONS.items():
        tag = "odc.dev/" + name.replace("_", "-")
        try:
            durations[name] = float(tags.get(tag, default))
        except ValueError:
            durations[name] = -1.0
        if not 0 <= durations[name] <= MAX_S:
            problem = f'its tag {tag}="{tags[tag][:100]}" is not 0 to {MAX_S:.0f} seconds'
            durations[name] = default
    # Tags of AWS contain no commas.
    return durations, sorted(set(tags.get(FEATURES, "").split())), problem
