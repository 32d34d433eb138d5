"""Dev servers that run as pods."""

from __future__ import annotations

from collections.abc import Sequence

from odcd.errors import WrongState
from odcd.executor.kubernetes import looks, naming, notices
from odcd.executor.kubernetes.cluster import ApiRefused, Cluster
from odcd.executor.kubernetes.forward import Forward
from odcd.executor.kubernetes.inventory import is_over
from odcd.executor.kubernetes.members import Members
from odcd.executor.kubernetes.pod_finder import PodFinder
from odcd.records.dev_server import Activity
from odcd.records.dispatch import Notice

OPEN_S = 20.0


class KubernetesDevServers:
    """Implements odcd.executor.base.DevServers."""

    def __init__(self, cluster: Cluster, members: Members, finder: PodFinder) -> None:
        self._cluster = cluster
        self._members = members
        self._finder = finder

    async def notify(self, job_id: int, attempt: int, notice: Notice) -> None:
        pods = await self._finder.find(job_id, attempt)
        await notices.notify(self._cluster, pods, job_id, notice)

    async def set_keys(self, job_id: int, attempt: int, lines: Sequence[str]) -> None:
        """Set the keys that may enter from now on, also after a container restart."""
        pods = await self._finder.find(job_id, attempt)
        await notices.set_keys(self._cluster, pods, job_id, lines)

    async def set_jupyter(self, job_id: int, attempt: int, *, on: bool) -> None:
        pods = await self._finder.find(job_id, attempt, only_first=True)
        await notices.set_jupyter(self._cluster, pods, job_id, on=on)

    async def look(self, job_id: int, attempt: int) -> Activity:
        there = self._members.pods.get((job_id, attempt), {})
        pods = [pod for _, pod in sorted(there.items())]
        members = int(pods[0].metadata.annotations.get(naming.MEMBERS, "1")) if pods else 1
        return await looks.look(self._cluster, pods, members)

    async def open_stream(self, job_id: int, attempt: int, rank: int, port: int) -> Forward:
        key = (job_id, attempt, rank)
        pod = await self._finder.find_one(key)
        if pod is None or is_over(pod):
            raise WrongState(
                f"member {rank} of reservation {job_id} no longer runs",
                f"`odcctl show {job_id}` shows how it ended.",
            )
        try:
            return await self._cluster.forward(
                pod.metadata.namespace, pod.metadata.name, port, OPEN_S
            )
        except ApiRefused as error:
            raise WrongState(
                f"member {rank} of reservation {job_id} cannot be reached: {error.message}",
                "Try again in a moment.",
            ) from error
