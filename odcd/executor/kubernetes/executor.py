"""The executor: it runs the database's attempts as pods, and reports the state of pods as facts."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import datetime

from odcd.clock import Clock
from odcd.errors import NotImplementedYet, RunnerDown, WrongState
from odcd.executor.base import Expected
from odcd.executor.kubernetes import canaries, notices, status
from odcd.executor.kubernetes.background import Background
from odcd.executor.kubernetes.cluster import Cluster
from odcd.executor.kubernetes.contents import Contents, OnContents
from odcd.executor.kubernetes.dev_servers import KubernetesDevServers
from odcd.executor.kubernetes.ends import Ends
from odcd.executor.kubernetes.ledger import Ledger
from odcd.executor.kubernetes.members import Members
from odcd.executor.kubernetes.naming import Key, is_dev_server
from odcd.executor.kubernetes.objects import Pod
from odcd.executor.kubernetes.orphans import Orphans
from odcd.executor.kubernetes.output import PodOutput
from odcd.executor.kubernetes.pod_finder import PodFinder
from odcd.executor.kubernetes.pod_writer import PodWriter
from odcd.executor.kubernetes.pods import PodSettings
from odcd.executor.kubernetes.progress import Progress
from odcd.executor.kubernetes.signals import send_signal
from odcd.executor.kubernetes.starts import Budgets, EnsureKeys, OnPort, Starts
from odcd.executor.kubernetes.unread_pods import UnreadPods
from odcd.executor.kubernetes.watch import Watch
from odcd.executor.terminals import Attached, Replayed
from odcd.isolation import IsolationWatch
from odcd.records.dispatch import ENDS, Dispatch, Fact, Notice
from odcd.records.node import Canary, CanaryEnd, NodeReport

log = logging.getLogger(__name__)

TICK_S = 1.0
OOM_TRIES, OOM_AGAIN_S = 10, 3.0


class KubernetesExecutor:
    """Implements odcd.executor.base.Executor. It passes events of the cluster and requests of the
    daemon to the modules that handle them.

    Actions of a former leader are harmless: pods are named after their attempts, and an attempt
    never restarts.
    """

    name = "kubernetes"
    keeps_time = False
    reconciles = True

    def __init__(
        self,
        cluster: Cluster,
        clock: Clock,
        settings: PodSettings,
        output: PodOutput,
        *,
        instance_types: Callable[[], Awaitable[Mapping[str, str]]],
        on_orphans: Callable[[Sequence[str]], Awaitable[None]],
        orphan_s: float,
        leads: Callable[[], bool],
        budgets: Budgets,
        ensure_keys: EnsureKeys,
        on_port: OnPort,
        on_contents: OnContents,
        watch: IsolationWatch | None = None,
    ) -> None:
        """leads: whether it is certain that no other daemon leads. instance_types: GPU type by the
        cloud's instance type. on_orphans: called with the names of pods without a job before they
        are removed. orphan_s: how long such a pod may stay. ensure_keys: returns the keys of a dev
        server, which are made if it has none; None: it has ended. on_port: called with a node port
        of a dev server, if enabled. on_contents: called with the contents of a disk before its pod
        ends. watch: counts pods and orders that cannot be processed."""
        self._cluster = cluster
        self._clock = clock
        self._tolerated = settings.tolerated
        self._output = output
        self._instance_types = instance_types
        self._term = 0
        self._ledger = Ledger()
        self._background = Background(self._ledger.wake, clock, watch)
        self._pod_writer = PodWriter(cluster, settings)
        self._members = Members(clock, self._ledger)
        self._finder = PodFinder(self._members, self._pod_writer)
        self.dev_servers = KubernetesDevServers(cluster, self._members, self._finder)
        self._progress = Progress(self._members, self._ledger, clock, self._on_oom)
        self._watch = Watch(
            cluster, settings.namespaces, clock, self._on_pod, self._progress.on_event, watch
        )  # fmt: skip
        nodes = self._watch.nodes.items
        self._ends = Ends(
            self._members, nodes, self._pod_writer, output, self._background, clock,
            settings.grace_s, Contents(cluster, on_contents), watch,
        )  # fmt: skip
        self._starts = Starts(
            self._members, self._ends, nodes, self._pod_writer, self._background, clock, leads,
            budgets, ensure_keys, on_port, watch,
        )  # fmt: skip
        self._unread = UnreadPods(self._members, self._pod_writer, self._background, clock, watch)
        self._orphans = Orphans(self._members, self._ends, clock, orphan_s, on_orphans)
        self._canaries = canaries.Canaries(self._pod_writer, clock)

    # -- lifetime ---------------------------------------------------------------------------------

    async def open(self, term: int) -> None:
        self._term = term
        if not self._background.runs:
            works = {**self._watch.works(), **self._starts.works(), "tick": self._tick}
            for name, loop in works.items():
                self._background.keep(name, loop)
        await self._watch.sync()

    @property
    def unreached_s(self) -> float:
        return self._watch.unreached_s

    def waits(self, job_id: int) -> list[str]:
        if self.unreached_s:
            return [f"the API server has not answered for {self.unreached_s:.0f} s"]
        return self._starts.waits(job_id)

    async def close(self) -> None:
        await self._background.close()
        await self._cluster.close()

    # -- events of the cluster and timers ----------------------------------------------------------

    def _on_pod(self, key: Key, before: Pod | None, after: Pod | None) -> None:
        if key[0] == canaries.JOB:
            self._canaries.note(key, after)
            return
        with self._unread.guard(key):
            self._see(key, before, after)

    def _see(self, key: Key, before: Pod | None, after: Pod | None) -> None:
        if after is not None:
            self._ends.look(after, key)
            if is_dev_server(after):
                self._progress.see(after, key)
        elif before is not None:
            self._members.forget(before, key)
            self._progress.forget(before, key)

    def _on_oom(self, key: Key, fact: Fact) -> None:
        self._background.spawn(self._notify_of_oom(key, notices.oom_notice(fact)))

    async def _notify_of_oom(self, key: Key, notice: Notice) -> None:
        for _ in range(OOM_TRIES):
            pod = self._members.pod(key)
            if pod is None:
                return
            try:
                await notices.notify(self._cluster, [pod], key[0], notice)
                return
            except (RunnerDown, WrongState) as error:
                log.warning(
                    "kubernetes.notice_failed", extra={"job_id": key[0], "why": error.message}
                )
            await self._clock.sleep(OOM_AGAIN_S)

    async def _tick(self) -> None:
        while True:
            await self._clock.sleep(TICK_S)
            if self._watch.pods.trouble is None:
                self._starts.judge()
                self._unread.judge(lambda key, pod: self._see(key, None, pod))
                if self._watch.nodes.trouble is None:
                    self._ends.force()

    # -- attempts -------------------------------------------------------------------------------

    async def start(self, dispatches: Sequence[Dispatch], texts: Mapping[str, str]) -> None:
        """Queue the attempts, which are started in the background. Until then they are not started
        in the database, so they would be sent again."""
        self._starts.order(dispatches, texts)

    async def stop(self, job_id: int, attempt: int, *, signal: int, grace_s: float) -> None:
        """signal is always TERM: kubelet sends no other."""
        self._starts.withdraw((job_id, attempt))
        self._ends.stop((job_id, attempt), grace_s)

    async def signal(self, job_id: int, attempt: int, *, signal: int, batch_only: bool) -> None:
        pods = await self._finder.find(job_id, attempt, only_first=batch_only)
        await send_signal(self._cluster, pods, job_id, signal, batch_only=batch_only)

    async def set_end(self, job_id: int, attempt: int, ends_at: datetime | None) -> None:
        """Does nothing: the database's sweep ends jobs that exceed their time limit."""

    async def adopt(self, read_expected: Callable[[], Awaitable[Sequence[Expected]]]) -> None:
        """Read the pods first: the intents of all of them are then already in the database."""
        self._watch.require()
        members = self._members
        there = {
            (*attempt, rank): pod
            for attempt, pods in members.pods.items()
            for rank, pod in pods.items()
        }
        expected = {(job, attempt, rank): on for job, attempt, rank, on in await read_expected()}
        members.expect_live(expected)
        self._know(there, expected)
        for key in [key for key, on in expected.items() if on and key not in there]:
            members.begun.add(key)
            if key in members.over or await self._pod_writer.find_member(key) is not None:
                continue
            members.end(key, status.gone(key, self._clock.now(), started=True))
        orphans = {key: pod for key, pod in there.items() if key not in expected}
        await self._orphans.remove(orphans, self._term)
        live = {key[:2] for key in expected} | members.pods.keys() | self._starts.ordered
        members.trim(live)
        self._starts.trim(live)

    def _know(self, there: Mapping[Key, Pod], expected: Mapping[Key, bool]) -> None:
        """Mark the dev servers that were ready before; until now they could not be
        distinguished."""
        members = self._members
        known, members.knows = members.knows, True
        dev_servers = [(key, pod) for key, pod in there.items() if is_dev_server(pod)]
        for key, pod in dev_servers:
            if expected.get(key):
                members.begun.add(key)
                members.unstarted.discard(key)
            if not known:
                self._on_pod(key, None, pod)

    # -- facts ----------------------------------------------------------------------------------

    async def observe(self) -> AsyncIterator[list[Fact]]:
        """Runs until cancelled. Raises the error of a failed background task."""
        while True:
            facts = await self._ledger.take()
            if self._background.failed is not None:
                raise self._background.failed
            if facts:
                yield facts

    async def acknowledge(self, facts: Sequence[Fact]) -> None:
        self._ledger.acknowledge(facts)
        for fact in facts:
            if fact.kind in ENDS:
                self._ends.tidy((fact.job_id, fact.attempt, fact.rank))

    # -- nodes ----------------------------------------------------------------------------------

    async def inventory(self) -> list[NodeReport]:
        self._watch.require()
        return self._watch.inventory(await self._instance_types(), self._tolerated)

    def placed(self) -> Mapping[str, Sequence[int]]:
        found: dict[str, list[int]] = {}
        for (job_id, _), pods in self._members.pods.items():
            for pod in pods.values():
                found.setdefault(pod.metadata.namespace, []).append(job_id)
                break
        return found

    async def nodes_changed(self) -> None:
        await self._watch.nodes_changed()

    async def try_nodes(self, canaries: Sequence[Canary]) -> list[CanaryEnd]:
        self._watch.require()
        return await self._canaries.attend(canaries, self._term)

    # -- output ---------------------------------------------------------------------------------

    def logs(
        self, dispatch: Dispatch, rank: int, *, stderr: bool, follow: bool
    ) -> AsyncGenerator[bytes]:
        """Both streams are combined, because container logs are."""
        return self._output.logs(dispatch, rank, follow=follow)

    def shares_output(self, dispatch: Dispatch, *, stderr: bool) -> bool:
        return False

    async def attach(self, dispatch: Dispatch, rank: int) -> Attached | Replayed:
        raise NotImplementedYet(
            "odc does not support terminals for jobs on Kubernetes yet",
            f"`odcctl logs {dispatch.job_id} -f` follows its output.",
        )
