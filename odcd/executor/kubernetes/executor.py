"""The executor: it runs the database's attempts as pods, and reports the state of pods as facts."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta

from odcd.clock import Clock
from odcd.errors import NotImplementedYet
from odcd.executor.base import Expected
from odcd.executor.kubernetes import canaries, status
from odcd.executor.kubernetes.background import Background
from odcd.executor.kubernetes.cluster import Cluster
from odcd.executor.kubernetes.contents import Contents, OnContents
from odcd.executor.kubernetes.cooldowns import Cooldowns
from odcd.executor.kubernetes.degradations import Degradations
from odcd.executor.kubernetes.dev_servers import KubernetesDevServers
from odcd.executor.kubernetes.ends import Ends
from odcd.executor.kubernetes.fence import Fence, Fencer
from odcd.executor.kubernetes.followers import Followers
from odcd.executor.kubernetes.image_pulls import Denials
from odcd.executor.kubernetes.ledger import Ledger
from odcd.executor.kubernetes.members import Members
from odcd.executor.kubernetes.naming import Key, is_dev_server
from odcd.executor.kubernetes.objects import Pod
from odcd.executor.kubernetes.oom_notices import OomNotices
from odcd.executor.kubernetes.orphans import Orphans
from odcd.executor.kubernetes.out_of_service import OutOfService
from odcd.executor.kubernetes.output import PodOutput
from odcd.executor.kubernetes.pod_finder import PodFinder
from odcd.executor.kubernetes.pod_writer import PodWriter
from odcd.executor.kubernetes.pods import PodSettings
from odcd.executor.kubernetes.progress import Progress
from odcd.executor.kubernetes.signals import send_signal
from odcd.executor.kubernetes.starts import Budgets, EnsureKeys, OnPort, Starts
from odcd.executor.kubernetes.steps.pod_steps import KubernetesSteps
from odcd.executor.kubernetes.unread_pods import UnreadPods
from odcd.executor.kubernetes.watch import Watch
from odcd.executor.terminals import Attached, Replayed
from odcd.isolation import IsolationWatch
from odcd.records.dispatch import ENDS, Dispatch, Fact
from odcd.records.node import Canary, CanaryEnd, NodeReport

TICK_S = 1.0


class KubernetesExecutor:
    """Implements odcd.executor.base.Executor. It passes events of the cluster and requests of the
    daemon to the modules that handle them. Actions of a former leader are harmless: pods are named
    after their attempts, and an attempt never restarts."""

    name = "kubernetes"
    keeps_time = False
    keeps_declared = False
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
        fencer: Fencer | None,
        node_grace: timedelta,
        log_streams: int,
        watch: IsolationWatch | None = None,
    ) -> None:
        """leads: whether it is certain that no other daemon leads. instance_types: GPU type by the
        cloud's instance type. on_orphans: called with the names of pods without a job before they
        are removed. orphan_s: how long such a pod may stay. ensure_keys: returns the keys of a dev
        server, which are made if it has none; None: it has ended. on_port: called with a node port
        of a dev server, if enabled. on_contents: called with the contents of a disk before its pod
        ends. fencer: powers nodes off that were silent for node_grace. log_streams: how many
        members' logs are followed at the same time. watch: counts pods and orders that cannot be
        processed."""
        self._cluster, self._clock = cluster, clock
        self._terms = settings.terms
        self._cooldowns, self._output = Cooldowns(clock), output
        self._instance_types = instance_types
        self._term, self._ledger = 0, Ledger()
        self._background = Background(self._ledger.wake, clock, watch)
        self._pod_writer = PodWriter(cluster, settings, leads)
        self._members = Members(clock, self._ledger, Denials(budgets.denied_s))
        self._finder = PodFinder(self._members, self._pod_writer)
        self.dev_servers = KubernetesDevServers(cluster, self._members, self._finder)
        self.steps = KubernetesSteps(cluster, self._members, self._finder, settings, clock)
        note_oom = OomNotices(cluster, self._members, self._background, clock).note
        self._progress = Progress(self._members, self._ledger, clock, note_oom)
        self._watch = Watch(
            cluster, settings.namespaces, clock, self._on_pod,
            lambda before, after: self._ends.on_node(before, after), self._progress.on_event, watch,
        )  # fmt: skip
        self._followers = Followers(output, self._background, clock, log_streams)
        output.refresh, nodes = self._followers.refresh, self._watch.nodes.items
        fence = Fence(nodes, clock, fencer, node_grace, OutOfService(cluster, clock))
        self._ends = Ends(
            self._members, nodes, self._pod_writer, output, self._background, clock,
            settings.grace_s, Contents(cluster, on_contents), fence, self._followers, watch,
        )  # fmt: skip
        self._starts = Starts(
            self._members, self._ends, nodes, self._pod_writer, self._background, clock, leads,
            budgets, ensure_keys, on_port, self._cooldowns, watch,
        )  # fmt: skip
        self._unread = UnreadPods(self._members, self._pod_writer, self._background, clock, watch)
        self._orphans = Orphans(self._members, self._ends, clock, orphan_s, on_orphans)
        self._canaries = canaries.Canaries(self._pod_writer, clock, nodes)
        self._degradations = Degradations(cluster, settings, self._background)

    # -- lifetime ---------------------------------------------------------------------------------

    async def open(self, term: int) -> None:
        self._term = term
        self.steps.set_term(term)
        if not self._background.runs:
            works = self._watch.works() | self._starts.works() | self._followers.works()
            works["tick"] = self._tick
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
        await self.steps.close()
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
            begun = key in self._members.begun
            self._ends.look(after, key)
            self.steps.see(after, key)
            if not begun and key in self._members.begun:
                self._cooldowns.end(after.spec.node_name)
            if is_dev_server(after):
                self._progress.see(after, key)
        elif before is not None:
            self._members.forget(before, key)
            self._progress.forget(before, key)
            self._followers.forget(key)
            self.steps.forget(key)

    async def _tick(self) -> None:
        while True:
            await self._clock.sleep(TICK_S)
            if self._watch.pods.trouble is None:
                self._starts.judge()
                if self._cooldowns.changed():
                    self._watch.note_change()
                self._unread.judge(lambda key, pod: self._see(key, None, pod))
                if self._watch.nodes.trouble is None:
                    self._ends.force()
                    self._degradations.log_once(self._watch.nodes.items)

    # -- attempts -------------------------------------------------------------------------------

    async def start(self, dispatches: Sequence[Dispatch], texts: Mapping[str, str]) -> None:
        """Queue the attempts, which are started in the background. Until then they are not started
        in the database, so they would be sent again."""
        self._starts.order(dispatches, texts)

    async def stop(
        self, job_id: int, attempt: int, *, signal: int, grace_s: float, again: bool = False
    ) -> None:
        """signal is always TERM: kubelet sends no other."""
        self._starts.withdraw((job_id, attempt))
        self._ends.stop((job_id, attempt), grace_s, again=again)

    async def signal(
        self, job_id: int, attempt: int, *, signal: int, batch_only: bool, rank: int | None = None
    ) -> None:
        if (
            batch_only
            or rank is not None
            or not await self.steps.signal_all((job_id, attempt), signal)
        ):
            pods = await self._finder.find_members(job_id, attempt, rank, only_first=batch_only)
            await send_signal(
                self._cluster, pods, job_id, signal, batch_only=batch_only, once=rank is not None
            )

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
        reports = self._watch.inventory(await self._instance_types(), self._terms)
        return [self._cooldowns.apply(report) for report in reports]

    def placed(self) -> Mapping[str, Sequence[int]]:
        found: dict[str, list[int]] = {}
        for (job_id, _), pods in self._members.pods.items():
            if pods:
                namespace = next(iter(pods.values())).metadata.namespace
                found.setdefault(namespace, []).append(job_id)
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
