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
from odcd.executor.kubernetes.fence import Fence
from odcd.executor.kubernetes.followers import Follower
from odcd.executor.kubernetes.inventory import is_over, is_ready
from odcd.executor.kubernetes.members import Members
from odcd.executor.kubernetes.naming import Attempt, Key, is_dev_server, log_facts, member_facts
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
        fence: Fence,
        followers: Follower,
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
        self._fence = fence
        self._followers = followers
        self._forcing: set[str] = set()
        """The uids of pods that are being removed by force."""
        self._unsaved = Isolation[Key]("pods", clock, watch)
        self._captures = asyncio.Semaphore(CAPTURES)
        self._cleaners = asyncio.Semaphore(CLEANERS)

    def look(self, pod: Pod, key: Key) -> None:
        """Record a pod's status, and end the pod if it must end."""
        hopeless = self._members.see(pod, key)
        if key in self._members.over:
            self._followers.note_end(key)
        elif key in self._members.begun and not is_dev_server(pod):
            # The container of a dev server restarts, and has a new log then.
            self._followers.begin(key, pod.metadata.namespace)
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
        log.warning("kubernetes.start_failed", extra={**log_facts(pod), "why": fact.detail})
        self._background.spawn(self._remove_unstarted(pod, key))

    async def _remove_unstarted(self, pod: Pod, key: Key) -> None:
        with self._unsaved.guard(key, job_id=key[0]):
            await self._list_disk(pod, key)
        try:
            if await self._pod_writer.remove(pod, 0, unchanged=True):
                # The watch may report this later. Until then the verdict must stay.
                return
        except (ApiRefused, RunnerDown) as error:
            log.warning("kubernetes.not_removed", extra={**log_facts(pod), "why": str(error)})
        found = self._members.pod(key)
        if found is not None and found.metadata.deletion_timestamp is None:
            # It changed meanwhile, or the API server did not answer: check it again.
            self._members.verdicts.pop(key, None)
            await self._clock.sleep(LOOK_AGAIN_S)
            current = self._members.pod(key)
            if current is not None:
                self.look(current, key)

    # -- members to be ended ----------------------------------------------------------------------

    def stop(self, attempt: Attempt, grace_s: float, *, again: bool) -> None:
        """End the attempt; pods of it that appear later end as well. again: its job may run again
        elsewhere, so its silent nodes must be fenced before."""
        self._members.stops[attempt] = grace_s
        if again:
            self._members.moving.add(attempt)
        for rank, pod in list(self._members.pods.get(attempt, {}).items()):
            self._end_pod(pod, (*attempt, rank), grace_s)
        self._background.spawn(self.confirm(attempt))

    def _end_pod(self, pod: Pod, key: Key, grace_s: float) -> None:
        if key in self._members.over or pod.metadata.uid in self._members.removing:
            return
        self._members.removing.add(pod.metadata.uid)
        self._background.spawn(self._end(pod, key, grace_s))

    async def _end(self, pod: Pod, key: Key, grace_s: float) -> None:
        # A pod whose output or disk cannot be read ends nevertheless.
        with self._unsaved.guard(key, job_id=key[0]):
            await self._save(pod, key)
        self._unsaved.clear(key)
        if not self._answers(pod.spec.node_name):
            await self._close_off(pod, key)
        if not self._answers(pod.spec.node_name):
            self._members.forced.add(pod.metadata.uid)
            grace_s = 0
        await self._remove(pod, grace_s)

    async def _save(self, pod: Pod, key: Key) -> None:
        """Store the output so far, and see that the log is open for the rest, before the pod is
        ended, because kubelet deletes a log with its pod."""
        await self._list_disk(pod, key)
        if key in self._members.begun and not await self._followers.checkpoint(key):
            opened = asyncio.Event()
            self._background.spawn(self._capture(key, pod.metadata.namespace, opened))
            with contextlib.suppress(TimeoutError, RunnerDown):
                async with asyncio.timeout(KEEP_S):
                    await self._output.keep(key, pod.metadata.namespace, follow=False)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(LOG_OPEN_S):
                    await opened.wait()

    async def _close_off(self, pod: Pod, key: Key) -> None:
        """If its job may run again elsewhere, fence its silent node first."""
        if key[:2] in self._members.moving:
            await self._fence.close_off(pod.spec.node_name)

    async def _capture(self, key: Key, namespace: str, opened: asyncio.Event) -> None:
        """Follow the log while the member is ending."""
        async with self._captures:
            try:
                await self._output.keep(key, namespace, follow=True, on_open=opened.set)
            except RunnerDown as error:
                log.warning(
                    "kubernetes.output_lost", extra={**member_facts(key), "why": error.message}
                )
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
        pods = [
            ((*attempt, rank), pod)
            for attempt, pods in self._members.pods.items()
            for rank, pod in pods.items()
        ]
        for key, pod in pods:
            gone_at, uid = pod.metadata.deletion_timestamp, pod.metadata.uid
            stuck = gone_at is not None and now - gone_at > STUCK
            if stuck and uid not in self._forcing and not self._answers(pod.spec.node_name):
                log.warning("kubernetes.forced", extra=log_facts(pod))
                self._forcing.add(uid)
                self._background.spawn(self._force(pod, key))

    async def _force(self, pod: Pod, key: Key) -> None:
        """One task per pod: while the API server refuses, it must not get more and more
        requests."""
        try:
            await self._close_off(pod, key)
            if not self._answers(pod.spec.node_name):
                self._members.forced.add(pod.metadata.uid)
                await self._remove(pod, 0)
        finally:
            self._forcing.discard(pod.metadata.uid)

    async def _list_disk(self, pod: Pod, key: Key) -> None:
        if self._answers(pod.spec.node_name):
            await self._contents.keep(pod, key)

    def on_node(self, before: Node | None, after: Node | None) -> None:
        """A node changed. If it has stopped answering, its members are about to be lost."""
        if after is not None and self._fence.must_reopen(after):
            self._background.spawn(self._fence.reopen(after.metadata.name))
        if (after is not None and is_ready(after)) or (before is not None and not is_ready(before)):
            return
        changed = after or before
        assert changed is not None
        name = changed.metadata.name
        why = f"its node {name} " + ("does not answer" if after else "was removed")
        for attempt, pods in self._members.pods.items():
            for rank, pod in pods.items():
                if pod.spec.node_name == name:
                    self._members.doom(pod, (*attempt, rank), why)

    def _answers(self, node_name: str) -> bool:
        """Whether the node's kubelet answers, as far as the cluster knows."""
        node = self._nodes.get(node_name)
        return not node_name if node is None else is_ready(node)

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
        stored = False
        with self._unsaved.guard(key, job_id=key[0]):
            stored = await self._followers.finish(key, KEEP_S)
        async with self._cleaners:
            if not stored and (key in self._members.begun or is_over(pod)):
                try:
                    with self._unsaved.guard(key, job_id=key[0]):
                        await self._output.keep(key, pod.metadata.namespace, follow=False)
                except RunnerDown as error:
                    log.warning(
                        "kubernetes.output_lost", extra={**log_facts(pod), "why": str(error)}
                    )
            self._unsaved.clear(key)
            await self._remove(pod, 0 if is_over(pod) else self._grace_s)
