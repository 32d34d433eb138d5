"""End members: because the database demands it, because they never start, or because their recorded
end leaves a pod behind. A member's output is stored before its pod is removed."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from datetime import timedelta

from odcd.clock import Clock
from odcd.errors import RunnerDown
from odcd.executor.kubernetes import status
from odcd.executor.kubernetes.api_retries import insist
from odcd.executor.kubernetes.background import Background
from odcd.executor.kubernetes.cluster import ApiRefused
from odcd.executor.kubernetes.contents import Contents
from odcd.executor.kubernetes.inventory import is_over
from odcd.executor.kubernetes.members import Members
from odcd.executor.kubernetes.naming import Attempt, Key
from odcd.executor.kubernetes.objects import Node, Pod
from odcd.executor.kubernetes.output import PodOutput
from odcd.executor.kubernetes.pod_writer import PodWriter
from odcd.isolation import Isolation, IsolationWatch
from odcd.records.dispatch import Fact

log = logging.getLogger(__name__)

CAPTURES = 200
CLEANERS = 16
KEEP_S = 10.0
"""How long reading a member's output may take before it is ended without that."""
LOG_OPEN_S = 2.0
LOOK_AGAIN_S = 1.0
STUCK = timedelta(seconds=15)
"""A pod is removed by force this long after its grace period, if its node does not answer."""


class Ends:
    def __init__(
        self,
        members: Members,
        nodes: Mapping[str, Node],
        pod_writer: PodWriter,
        output: PodOutput,
        background: Background,
        clock: Clock,
        grace_s: float,
        contents: Contents,
        watch: IsolationWatch | None = None,
    ) -> None:
        """grace_s: from TERM to KILL, for pods that the database does not know."""
        self._members = members
        self._nodes = nodes
        self._pod_writer = pod_writer
        self._output = output
        self._background = background
        self._clock = clock
        self._grace_s = grace_s
        self._contents = contents
        self._unsaved = Isolation[Key]("pods", clock, watch)
        self._captures = asyncio.Semaphore(CAPTURES)
        self._cleaners = asyncio.Semaphore(CLEANERS)

    def look(self, pod: Pod, key: Key) -> None:
        """Record a pod's status, and end the pod if it must end."""
        hopeless = self._members.see(pod, key)
        if hopeless is not None:
            self.condemn(pod, key, hopeless)
        if key[:2] in self._members.stops:
            self._end_pod(pod, key, self._members.stops[key[:2]])

    # -- members that never start -----------------------------------------------------------------

    def condemn(self, pod: Pod, key: Key, fact: Fact) -> None:
        """Remove a pod that cannot start, and record this as the member's end."""
        if key in self._members.verdicts:
            return
        self._members.verdicts[key] = fact
        log.warning("kubernetes.start_failed", extra={"pod": pod.metadata.name, "why": fact.detail})
        self._background.spawn(self._remove_unstarted(pod, key))

    async def _remove_unstarted(self, pod: Pod, key: Key) -> None:
        with self._unsaved.guard(key, job_id=key[0]):
            await self._list_disk(pod, key)
        try:
            await self._pod_writer.remove(pod, 0, unchanged=True)
        except (ApiRefused, RunnerDown) as error:
            log.warning("kubernetes.not_removed", extra={"pod": pod.key, "why": str(error)})
        found = self._members.pod(key)
        if found is not None and found.metadata.deletion_timestamp is None:
            # It changed meanwhile, or the API server did not answer: check it again.
            self._members.verdicts.pop(key, None)
            await self._clock.sleep(LOOK_AGAIN_S)
            current = self._members.pod(key)
            if current is not None:
                self.look(current, key)

    # -- members to be ended ----------------------------------------------------------------------

    def stop(self, attempt: Attempt, grace_s: float) -> None:
        """End the attempt; pods of it that appear later end as well."""
        self._members.stops[attempt] = grace_s
        for rank, pod in list(self._members.pods.get(attempt, {}).items()):
            self._end_pod(pod, (*attempt, rank), grace_s)
        self._background.spawn(self.confirm(attempt))

    def _end_pod(self, pod: Pod, key: Key, grace_s: float) -> None:
        if key in self._members.over or pod.metadata.uid in self._members.removing:
            return
        self._members.removing.add(pod.metadata.uid)
        grace_s = grace_s if self._answers(pod.spec.node_name) else 0
        self._background.spawn(self._end(pod, key, grace_s))

    async def _end(self, pod: Pod, key: Key, grace_s: float) -> None:
        # A pod whose output or disk cannot be read ends nevertheless.
        with self._unsaved.guard(key, job_id=key[0]):
            await self._save(pod, key)
        self._unsaved.clear(key)
        await self._remove(pod, grace_s)

    async def _save(self, pod: Pod, key: Key) -> None:
        """Store the output so far and open the log for the rest before the pod is ended,
        because kubelet deletes a log with its pod."""
        await self._list_disk(pod, key)
        if key in self._members.begun:
            opened = asyncio.Event()
            self._background.spawn(self._capture(key, pod.metadata.namespace, opened))
            with contextlib.suppress(TimeoutError, RunnerDown):
                async with asyncio.timeout(KEEP_S):
                    await self._output.keep(key, pod.metadata.namespace, follow=False)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOG_OPEN_S):
                    await opened.wait()

    async def _capture(self, key: Key, namespace: str, opened: asyncio.Event) -> None:
        """Follow the log while the member is ending."""
        async with self._captures:
            try:
                await self._output.keep(key, namespace, follow=True, on_open=opened.set)
            except RunnerDown as error:
                log.warning("kubernetes.output_lost", extra={"pod": key, "why": error.message})
            finally:
                opened.set()

    async def confirm(self, attempt: Attempt) -> None:
        """Members to end that have no pod: confirm this with the API server, then record their
        end."""
        members = self._members
        for rank in members.of(attempt):
            key = (*attempt, rank)
            if key in members.over or rank in members.pods.get(attempt, {}):
                continue
            pod = await insist(self._clock, lambda key=key: self._pod_writer.find_member(key))
            if key in members.over:
                continue
            if pod is None:
                started = key in members.begun
                members.end(key, status.gone(key, self._clock.now(), started=started))
            else:
                self._end_pod(pod, key, members.stops.get(attempt, 0))

    async def _remove(self, pod: Pod, grace_s: float) -> None:
        await insist(self._clock, lambda: self._pod_writer.remove(pod, grace_s))

    # -- members on nodes that do not answer ------------------------------------------------------

    def force(self) -> None:
        """Remove pods by force if kubelet, which should confirm their end, does not answer."""
        now = self._clock.now()
        pods = [pod for pods in self._members.pods.values() for pod in pods.values()]
        for pod in pods:
            gone_at, node = pod.metadata.deletion_timestamp, pod.spec.node_name
            if gone_at is not None and now - gone_at > STUCK and not self._answers(node):
                log.warning("kubernetes.forced", extra={"pod": pod.key, "node": node})
                self._background.spawn(self._remove(pod, 0))

    async def _list_disk(self, pod: Pod, key: Key) -> None:
        if self._answers(pod.spec.node_name):
            await self._contents.keep(pod, key)

    def _answers(self, node_name: str) -> bool:
        """Whether the node's kubelet answers, as far as the cluster knows."""
        node = self._nodes.get(node_name)
        if node is None:
            return not node_name
        ready = next((c for c in node.status.conditions if c.type == "Ready"), None)
        return ready is not None and ready.status == "True"

    # -- members whose end is recorded ------------------------------------------------------------

    def tidy(self, key: Key) -> None:
        """Remove the pod of a member whose end is recorded. Rank 0's pod goes last, because it owns
        the script that the other members start with."""
        attempt, rank = key[:2], key[2]
        all_over = self._members.are_over(attempt)
        if rank == 0 and not all_over:
            return
        keys = [key]
        if rank != 0 and all_over and (*attempt, 0) in self._members.over:
            keys.append((*attempt, 0))
        for over in keys:
            pod = self._members.pod(over)
            if pod is not None:
                self.clean(pod, over)

    def clean(self, pod: Pod, key: Key) -> None:
        """Store the pod's output, and remove the pod."""
        if pod.metadata.uid not in self._members.removing:
            self._members.removing.add(pod.metadata.uid)
            self._background.spawn(self._clean(pod, key))

    async def _clean(self, pod: Pod, key: Key) -> None:
        with self._unsaved.guard(key, job_id=key[0]):
            await self._list_disk(pod, key)
        async with self._cleaners:
            if key in self._members.begun or is_over(pod):
                try:
                    with self._unsaved.guard(key, job_id=key[0]):
                        await self._output.keep(key, pod.metadata.namespace, follow=False)
                except RunnerDown as error:
                    log.warning("kubernetes.output_lost", extra={"pod": pod.key, "why": str(error)})
            self._unsaved.clear(key)
            await self._remove(pod, 0 if is_over(pod) else self._grace_s)
