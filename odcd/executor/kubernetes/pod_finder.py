"""The pods of one attempt."""

from __future__ import annotations

from odcd.errors import RunnerDown
from odcd.executor.kubernetes.members import Members
from odcd.executor.kubernetes.naming import Key
from odcd.executor.kubernetes.objects import Pod
from odcd.executor.kubernetes.pod_writer import PodWriter


class PodFinder:
    def __init__(self, members: Members, pod_writer: PodWriter) -> None:
        self._members = members
        self._pod_writer = pod_writer

    async def find_one(self, key: Key) -> Pod | None:
        return self._members.pod(key) or await self._pod_writer.find_member(key)

    async def find_members(
        self, job_id: int, attempt: int, rank: int | None, *, only_first: bool
    ) -> list[Pod]:
        """rank: one member; None: all. Raises RunnerDown if that one has no pod."""
        if rank is None:
            return await self.find(job_id, attempt, only_first=only_first)
        pod = await self.find_one((job_id, attempt, rank))
        if pod is None:
            raise RunnerDown(f"the member {rank} of job {job_id} has no pod")
        return [pod]

    async def find(
        self, job_id: int, attempt: int, *, only_first: bool = False
    ) -> list[Pod]:  # fmt: skip
        there = sorted(self._members.pods.get((job_id, attempt), {}).items())
        pods = [pod for rank, pod in there if not only_first or rank == 0]
        # A follower does not watch pods.
        return pods or await self._search(job_id, attempt, only_first=only_first)

    async def _search(self, job_id: int, attempt: int, *, only_first: bool) -> list[Pod]:
        pods: list[Pod] = []
        while pod := await self._pod_writer.find_member((job_id, attempt, len(pods))):
            pods.append(pod)
            if only_first:
                break
        return pods
