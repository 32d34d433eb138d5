"""The executor: attempts of the database as pods, and what becomes of the pods as facts."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import signal as signals
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from odcd.clock import Clock
from odcd.errors import NotImplementedYet, RunnerDown, WrongState
from odcd.executor.base import Expected
from odcd.executor.kubernetes import canaries, status
from odcd.executor.kubernetes.cluster import ApiRefused, Cluster
from odcd.executor.kubernetes.inventory import is_daemon, is_over, offer_of, take_inventory
from odcd.executor.kubernetes.launch import signal_command
from odcd.executor.kubernetes.ledger import Ledger
from odcd.executor.kubernetes.maker import Maker
from odcd.executor.kubernetes.mirror import Mirror
from odcd.executor.kubernetes.naming import TERM, Key, key_of, pod_name
from odcd.executor.kubernetes.objects import Node, Pod
from odcd.executor.kubernetes.output import PodOutput
from odcd.executor.kubernetes.pods import CONTAINER, PodSettings
from odcd.executor.terminals import Attached, Replayed
from odcd.model import Canary, CanaryEnd, Dispatch, Fact, NodeReport

log = logging.getLogger(__name__)

Attempt = tuple[int, int]
"""Job, attempt."""
_T = TypeVar("_T")

WORKERS = 8
CAPTURES = 200
CLEANERS = 16
TICK_S = 1.0
SYNC_S = 30.0
RETRY_S = (0.2, 10.0)
EXEC_S = 10.0
PROBE_S = 3.0
LEAD_LOOK_S = 0.1
LOG_OPEN_S = 2.0
_NO_RIGHT = re.compile(r"cannot \w+ resource")
STUCK = timedelta(seconds=15)
"""A pod whose grace has been over for so long, on a node that does not answer, is removed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """How long a start may take, in seconds. schedule: until a node has taken the pod. start: until
    its container runs, which pulls its image. orphan: how long a pod that no job has may stay."""

    schedule_s: float = 60.0
    start_s: float = 1800.0
    orphan_s: float = 30.0


@dataclass(slots=True)
class _Order:
    dispatch: Dispatch
    texts: Mapping[str, str]
    since_s: float
    pause_s: float = RETRY_S[0]


class KubernetesExecutor:
    """Implements odcd.executor.base.Executor.

    Only what the API server positively says becomes a fact. Acts of a leader that was superseded
    are harmless: pods have the names of their attempts, and no attempt comes to life again.
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
        leads: Callable[[], bool] = lambda: True,
        budgets: Budgets = Budgets(),
    ) -> None:
        """leads: is it certain that no other leads? instance_types: GPU type by the cloud's type of
        instance. on_orphans: told the names of pods that no job has, before they are removed."""
        self._cluster = cluster
        self._clock = clock
        self._settings = settings
        self._output = output
        self._instance_types = instance_types
        self._on_orphans = on_orphans
        self._leads = leads
        self._budgets = budgets
        self._maker = Maker(cluster, settings)
        self._canaries = canaries.Canaries(self._maker, clock)
        self._ledger = Ledger()
        self._nodes = Mirror(cluster, "/api/v1/nodes", Node, clock, self._on_node)
        self._pods = Mirror(cluster, "/api/v1/pods", Pod, clock, self._on_pod)
        self._tasks: set[asyncio.Task[None]] = set()
        self._failed: BaseException | None = None
        self._silent_since: float | None = None
        self._term = 0
        self._members: dict[Attempt, dict[int, Pod]] = {}
        self._ranks: dict[Attempt, int] = {}
        self._orders: dict[Attempt, _Order] = {}
        self._queue: asyncio.Queue[Attempt] = asyncio.Queue()
        self._made: set[Attempt] = set()
        self._stops: dict[Attempt, float] = {}
        """Attempts to end, with the grace of each."""
        self._unstarted: set[Key] = set()
        self._begun: set[Key] = set()
        self._over: set[Key] = set()
        self._verdicts: dict[Key, Fact] = {}
        """How pods that are being removed ended, where their status will not tell."""
        self._removing: set[str] = set()
        self._orphans: dict[Key, float] = {}
        self._nodes_changed = asyncio.Event()
        self._captures = asyncio.Semaphore(CAPTURES)
        self._cleaners = asyncio.Semaphore(CLEANERS)

    # -- life -----------------------------------------------------------------------------------

    async def open(self, term: int) -> None:
        self._term = term
        if not self._tasks:
            for work in (self._nodes.run(), self._pods.run(), self._tick(), self._probe()):
                self._spawn(work)
            for _ in range(WORKERS):
                self._spawn(self._work())
        deadline = self._clock.monotonic() + SYNC_S
        while not (self._nodes.synced and self._pods.synced):
            if self._clock.monotonic() > deadline:
                trouble = self._nodes.trouble or self._pods.trouble
                raise RunnerDown(f"nodes and pods cannot be listed: {trouble}")
            await self._clock.sleep(0.02)

    @property
    def unreached_s(self) -> float:
        return self._clock.monotonic() - self._silent_since if self._silent_since else 0.0

    async def _probe(self) -> None:
        """A connection may be dead without a word; a short question now and then tells."""
        while True:
            asked_at = self._clock.monotonic()
            try:
                await self._cluster.get("/version", timeout_s=PROBE_S)
                self._silent_since = None
            except ApiRefused:
                self._silent_since = None
            except RunnerDown:
                self._silent_since = self._silent_since or asked_at
            await self._clock.sleep(PROBE_S)

    def _spawn(self, work: Coroutine[object, object, None]) -> None:
        # Not in a TaskGroup: they live from open() to close(), which are calls of their own.
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._note_end)

    def _note_end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failed = error
            self._ledger.wake()

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._cluster.close()

    # -- what the cluster tells ------------------------------------------------------------------

    def _on_node(self, before: Node | None, after: Node | None) -> None:
        if before is None or after is None or _matters(before) != _matters(after):
            self._nodes_changed.set()

    def _own(self, pod: Pod) -> Key | None:
        return key_of(pod) if pod.metadata.namespace in self._settings.namespaces else None

    def _on_pod(self, before: Pod | None, after: Pod | None) -> None:
        pod = after or before
        assert pod is not None
        key = self._own(pod)
        if key is None:
            if not is_daemon(pod) and _holds(before) != _holds(after):
                self._nodes_changed.set()
        elif key[0] == canaries.JOB:
            self._canaries.note(key, after)
        elif after is None:
            self._forget(pod, key)
        else:
            self._members.setdefault(key[:2], {})[key[2]] = after
            self._see(after, key)

    def _see(self, pod: Pod, key: Key) -> None:
        seen = status.read_pod(pod, key, self._clock.now())
        if seen.begun is not None:
            self._unstarted.discard(key)
            if key not in self._begun:
                self._begun.add(key)
                self._ledger.tell(seen.begun)
        if seen.end is not None:
            self._unstarted.discard(key)
            if key not in self._over:
                self._over.add(key)
                end = seen.end
                if key[:2] not in self._stops:
                    end = status.by_delete(pod, end)
                self._ledger.tell(self._verdicts.pop(key, end))
        elif seen.hopeless is not None and pod.metadata.deletion_timestamp is None:
            self._condemn(pod, key, seen.hopeless)
        elif seen.begun is None:
            self._unstarted.add(key)
        if seen.end is None and key[:2] in self._stops:
            self._end_pod(pod, key, self._stops[key[:2]])

    def _forget(self, pod: Pod, key: Key) -> None:
        """A pod is gone; how it ended is told, unless it was before."""
        self._unstarted.discard(key)
        self._removing.discard(pod.metadata.uid)
        members = self._members.get(key[:2], {})
        members.pop(key[2], None)
        if not members:
            self._members.pop(key[:2], None)
        if key in self._over:
            return
        self._over.add(key)
        # A pod that was hopeless is so however it went.
        hopeless = status.read_pod(pod, key, self._clock.now()).hopeless
        fact = self._verdicts.pop(key, None) or hopeless
        if fact is None and key[:2] in self._stops and key in self._begun:
            fact = Fact(
                job_id=key[0], attempt=key[1], rank=key[2], kind="exited", at=self._clock.now(),
                signal=signals.SIGTERM,
            )  # fmt: skip
        self._ledger.tell(fact or status.vanished(pod, key, self._clock.now()))

    def _condemn(self, pod: Pod, key: Key, fact: Fact) -> None:
        """It will not start: remove it, and let that be its end."""
        if key in self._verdicts:
            return
        self._verdicts[key] = fact
        log.warning("kubernetes.start_failed", extra={"pod": pod.metadata.name, "why": fact.detail})
        self._spawn(self._remove_unstarted(pod, key))

    async def _remove_unstarted(self, pod: Pod, key: Key) -> None:
        try:
            await self._maker.remove(pod, 0, unchanged=True)
        except (ApiRefused, RunnerDown) as error:
            log.warning("kubernetes.not_removed", extra={"pod": pod.key, "why": str(error)})
        found = self._members.get(key[:2], {}).get(key[2])
        if found is not None and found.metadata.deletion_timestamp is None:
            # It moved on meanwhile, or nobody answered: look at it again.
            self._verdicts.pop(key, None)
            await self._clock.sleep(TICK_S)
            current = self._members.get(key[:2], {}).get(key[2])
            if current is not None:
                self._see(current, key)

    # -- starting -------------------------------------------------------------------------------

    async def start(self, dispatches: Sequence[Dispatch], texts: Mapping[str, str]) -> None:
        """They are made in the background: until then the database has them as not started, so
        they would be sent again."""
        for dispatch in dispatches:
            attempt = dispatch.key
            self._ranks[attempt] = len(dispatch.members)
            if attempt in self._made and self._are_there(dispatch):
                continue
            named = {
                digest: texts[digest]
                for digest in (dispatch.script_digest, dispatch.environment_digest)
            }
            if attempt not in self._orders:
                self._queue.put_nowait(attempt)
            self._orders[attempt] = _Order(dispatch, named, self._clock.monotonic())

    def _are_there(self, dispatch: Dispatch) -> bool:
        members = self._members.get(dispatch.key, {})
        return all(
            m.rank in members or (*dispatch.key, m.rank) in self._over for m in dispatch.members
        )

    async def _work(self) -> None:
        while True:
            attempt = await self._queue.get()
            while not self._leads():
                # A sleeper that has just woken: its orders may be over.
                await self._clock.sleep(LEAD_LOOK_S)
            order = self._orders.get(attempt)
            if order is None or attempt in self._stops:
                self._orders.pop(attempt, None)
                continue
            try:
                offers = {
                    m.node: offer_of(self._nodes.items.get(m.node)) for m in order.dispatch.members
                }
                keys = [(*attempt, m.rank) for m in order.dispatch.members]
                but = {key[2] for key in keys if key in self._begun or key in self._over}
                await self._maker.make(order.dispatch, order.texts, offers, but)
                self._made.add(attempt)
                self._orders.pop(attempt, None)
                if attempt in self._stops:
                    await self._confirm_ends(attempt)
            except RunnerDown as error:
                log.warning("kubernetes.unmade", extra={"job": attempt[0], "why": error.message})
                self._try_again(attempt, order, None)
            except ApiRefused as error:
                log.warning("kubernetes.refused", extra={"job": attempt[0], "why": str(error)})
                waited_s = self._clock.monotonic() - order.since_s
                if may_pass(error) and waited_s < self._budgets.schedule_s:
                    self._try_again(attempt, order, error.retry_after_s)
                else:
                    self._orders.pop(attempt, None)
                    await self._undo(order.dispatch, error)

    def _try_again(self, attempt: Attempt, order: _Order, after_s: float | None) -> None:
        pause_s = order.pause_s if after_s is None else max(after_s, order.pause_s)
        order.pause_s = min(order.pause_s * 2, RETRY_S[1])

        async def later() -> None:
            await self._clock.sleep(pause_s)
            self._queue.put_nowait(attempt)

        self._spawn(later())

    async def _undo(self, dispatch: Dispatch, error: ApiRefused) -> None:
        """The API server would not have it: take away what was made, and say why."""
        now = self._clock.now()
        for member in dispatch.members:
            key = (*dispatch.key, member.rank)
            if member.state != "starting" or key in self._over:
                continue
            fact = status.refused(key, now, error.message, passing=may_pass(error))
            pod = await self._insist(lambda key=key: self._find(key))
            if pod is None:
                self._over.add(key)
                self._ledger.tell(fact)
            else:
                self._verdicts.setdefault(key, fact)
                await self._insist(lambda pod=pod: self._maker.remove(pod, 0))

    # -- ending ---------------------------------------------------------------------------------

    async def stop(self, job_id: int, attempt: int, *, signal: int, grace_s: float) -> None:
        """signal is always TERM: kubelet sends no other."""
        key = job_id, attempt
        self._stops[key] = grace_s
        self._orders.pop(key, None)
        for rank, pod in list(self._members.get(key, {}).items()):
            self._end_pod(pod, (*key, rank), grace_s)
        self._spawn(self._confirm_ends(key))

    def _end_pod(self, pod: Pod, key: Key, grace_s: float) -> None:
        if key in self._over or pod.metadata.uid in self._removing:
            return
        self._removing.add(pod.metadata.uid)
        self._spawn(self._end(pod, key, grace_s if self._answers(pod.spec.node_name) else 0))

    async def _end(self, pod: Pod, key: Key, grace_s: float) -> None:
        """What it has written is kept, and its log is open for the rest, before it is told to end:
        kubelet drops a log with its pod."""
        if key in self._begun:
            opened = asyncio.Event()
            self._spawn(self._capture(key, pod.metadata.namespace, opened))
            with contextlib.suppress(TimeoutError, RunnerDown):
                async with asyncio.timeout(LOG_OPEN_S):
                    await self._output.keep(key, pod.metadata.namespace, follow=False)
                    await opened.wait()
        await self._remove(pod, grace_s)

    async def _remove(self, pod: Pod, grace_s: float) -> None:
        await self._insist(lambda: self._maker.remove(pod, grace_s))

    async def _capture(self, key: Key, namespace: str, opened: asyncio.Event) -> None:
        """Follow what it still writes while it is being ended."""
        async with self._captures:
            try:
                await self._output.keep(key, namespace, follow=True, on_open=opened.set)
            except RunnerDown as error:
                log.warning("kubernetes.output_lost", extra={"pod": key, "why": error.message})
            finally:
                opened.set()

    async def _confirm_ends(self, attempt: Attempt) -> None:
        """Members to be ended of which there is no pod: ask, then say so."""
        for rank in range(self._ranks.get(attempt, 1)):
            key = (*attempt, rank)
            if key in self._over or rank in self._members.get(attempt, {}):
                continue
            pod = await self._insist(lambda key=key: self._find(key))
            if key in self._over:
                continue
            if pod is None:
                self._over.add(key)
                self._ledger.tell(status.gone(key, self._clock.now(), started=key in self._begun))
            else:
                self._end_pod(pod, key, self._stops.get(attempt, 0))

    async def _find(self, key: Key) -> Pod | None:
        for namespace in (self._settings.namespaces.batch, self._settings.namespaces.dev):
            pod = await self._maker.find(namespace, pod_name(*key))
            if pod is not None:
                return pod
        return None

    async def _insist(self, act: Callable[[], Awaitable[_T]]) -> _T:
        """Until the API server has answered; what it refuses for good is tried on, slower."""
        pause_s = RETRY_S[0]
        while True:
            try:
                return await act()
            except (RunnerDown, ApiRefused) as error:
                log.warning("kubernetes.again", extra={"why": str(error)})
            await self._clock.sleep(pause_s)
            pause_s = min(pause_s * 2, RETRY_S[1])

    def _answers(self, node_name: str) -> bool:
        """Does the node's kubelet, as far as the cluster knows?"""
        node = self._nodes.items.get(node_name)
        if node is None:
            return not node_name
        ready = next((c for c in node.status.conditions if c.type == "Ready"), None)
        return ready is not None and ready.status == "True"

    async def signal(self, job_id: int, attempt: int, *, signal: int, batch_only: bool) -> None:
        members = [
            (rank, pod)
            for rank, pod in sorted(self._members.get((job_id, attempt), {}).items())
            if not batch_only or rank == 0
        ]
        if not members:  # a follower watches nothing
            members = await self._look_up(job_id, attempt, only_first=batch_only)
        name = signals.Signals(signal).name.removeprefix("SIG")
        words = signal_command(name, batch_only=batch_only)
        for _, pod in members:
            if is_over(pod):
                continue
            try:
                await self._cluster.execute(
                    pod.metadata.namespace, pod.metadata.name, CONTAINER, words, EXEC_S
                )
            except ApiRefused as error:
                raise WrongState(
                    f"job {job_id} cannot be signalled: {error.message}",
                    "Its container needs /bin/sh and kill.",
                ) from error

    async def _look_up(
        self, job_id: int, attempt: int, *, only_first: bool
    ) -> list[tuple[int, Pod]]:
        members: list[tuple[int, Pod]] = []
        while pod := await self._find((job_id, attempt, len(members))):
            members.append((len(members), pod))
            if only_first:
                break
        return members

    async def set_end(self, job_id: int, attempt: int, ends_at: datetime | None) -> None:
        """Nothing to move: the database's sweep ends what is over its limit."""

    # -- what is there and what should be --------------------------------------------------------

    async def adopt(self, read_expected: Callable[[], Awaitable[Sequence[Expected]]]) -> None:
        """Pods are looked at first: whatever was there then has its intent in the database."""
        self._insist_on_watching()
        there = {
            (*attempt, rank): pod
            for attempt, pods in self._members.items()
            for rank, pod in pods.items()
        }
        expected = {(job, attempt, rank): on for job, attempt, rank, on in await read_expected()}
        for key in expected:
            attempt = key[:2]
            self._ranks[attempt] = max(self._ranks.get(attempt, 0), key[2] + 1)
        missing = [key for key, on in expected.items() if on and key not in there]
        for key in missing:
            self._begun.add(key)
            if key in self._over or await self._find(key) is not None:
                continue
            self._over.add(key)
            self._ledger.tell(status.gone(key, self._clock.now(), started=True))
        await self._remove_orphans({key: pod for key, pod in there.items() if key not in expected})
        self._trim(set(expected))

    async def _remove_orphans(self, pods: Mapping[Key, Pod]) -> None:
        """What runs for no attempt: of older terms and over, at once; else after a grace."""
        now = self._clock.monotonic()
        due: list[tuple[Key, Pod]] = []
        for key, pod in pods.items():
            since = self._orphans.setdefault(key, now)
            older = int(pod.metadata.annotations.get(TERM, "0")) < self._term
            if pod.metadata.uid in self._removing:
                continue
            if older or is_over(pod) or now - since >= self._budgets.orphan_s:
                due.append((key, pod))
        for key in [key for key in self._orphans if key not in pods]:
            del self._orphans[key]
        alive = [pod.metadata.name for _, pod in due if not is_over(pod)]
        if alive:
            log.warning("kubernetes.orphans", extra={"pods": alive})
            await self._on_orphans(alive)
        for key, pod in due:
            self._removing.add(pod.metadata.uid)
            self._spawn(self._clean(key, pod))

    def _trim(self, expected: set[Key]) -> None:
        """Forget what is neither in the database nor in the cluster."""
        live = {key[:2] for key in expected} | self._members.keys() | self._orders.keys()
        for known in (self._ranks, self._stops):
            for attempt in [a for a in known if a not in live]:
                del known[attempt]
        self._made &= live
        for keys in (self._begun, self._over):
            keys -= {key for key in keys if key[:2] not in live}
        for key in [key for key in self._verdicts if key[:2] not in live]:
            del self._verdicts[key]

    async def _tick(self) -> None:
        while True:
            await self._clock.sleep(TICK_S)
            now = self._clock.now()
            if self._pods.trouble is None:
                for key in list(self._unstarted):
                    self._judge_start(key, now)
            if self._nodes.trouble is None and self._pods.trouble is None:
                for pods in list(self._members.values()):
                    for pod in list(pods.values()):
                        self._force(pod, now)

    def _judge_start(self, key: Key, now: datetime) -> None:
        pod = self._members.get(key[:2], {}).get(key[2])
        if pod is None or pod.metadata.deletion_timestamp is not None:
            return
        age_s = (now - (pod.metadata.creation_timestamp or now)).total_seconds()
        budget_s = self._budgets.start_s if pod.spec.node_name else self._budgets.schedule_s
        if age_s > budget_s:
            waits = status.read_pod(pod, key, now).waits
            self._condemn(pod, key, status.late(pod, key, now, waits, budget_s))

    def _force(self, pod: Pod, now: datetime) -> None:
        """Kubelet is to confirm that a pod has ended; one that does not answer never will."""
        gone_at = pod.metadata.deletion_timestamp
        if gone_at is not None and now - gone_at > STUCK and not self._answers(pod.spec.node_name):
            log.warning("kubernetes.forced", extra={"pod": pod.key, "node": pod.spec.node_name})
            self._spawn(self._remove(pod, 0))

    # -- facts ----------------------------------------------------------------------------------

    async def observe(self) -> AsyncIterator[list[Fact]]:
        """Never ends by itself. Raises what a part of the executor failed with."""
        while True:
            facts = await self._ledger.take()
            if self._failed is not None:
                raise self._failed
            if facts:
                yield facts

    async def acknowledge(self, facts: Sequence[Fact]) -> None:
        self._ledger.acknowledge(facts)
        for fact in facts:
            if fact.kind != "started":
                self._tidy((fact.job_id, fact.attempt, fact.rank))

    def _tidy(self, key: Key) -> None:
        """Remove the pod of a member whose end is written down. Rank 0's goes last: the script that
        the others begin with is its own."""
        members = self._members.get(key[:2], {})
        if key[2] == 0 and any((*key[:2], rank) not in self._over for rank in members):
            return
        ranks = [key[2]]
        if (
            key[2] != 0
            and (*key[:2], 0) in self._over
            and all((*key[:2], rank) in self._over for rank in members)
        ):
            ranks.append(0)
        for rank in ranks:
            pod = members.get(rank)
            if pod is not None and pod.metadata.uid not in self._removing:
                self._removing.add(pod.metadata.uid)
                self._spawn(self._clean((*key[:2], rank), pod))

    async def _clean(self, key: Key, pod: Pod) -> None:
        async with self._cleaners:
            if key in self._begun or is_over(pod):
                try:
                    await self._output.keep(key, pod.metadata.namespace, follow=False)
                except RunnerDown as error:
                    log.warning("kubernetes.output_lost", extra={"pod": pod.key, "why": str(error)})
            await self._remove(pod, 0 if is_over(pod) else self._settings.grace_s)

    # -- nodes ----------------------------------------------------------------------------------

    def _insist_on_watching(self) -> None:
        for mirror in (self._nodes, self._pods):
            if mirror.trouble is not None:
                raise RunnerDown(f"the cluster is not being watched: {mirror.trouble}")

    async def inventory(self) -> list[NodeReport]:
        self._insist_on_watching()
        taken = take_inventory(
            self._nodes.items.values(),
            self._pods.items.values(),
            lambda pod: self._own(pod) is not None,
            await self._instance_types(),
            self._settings.tolerated,
        )
        for name, why in sorted(taken.left_out.items()):
            log.warning("kubernetes.node_left_out", extra={"node": name, "why": why})
        return taken.nodes

    async def nodes_changed(self) -> None:
        await self._nodes_changed.wait()
        self._nodes_changed.clear()

    async def try_nodes(self, wanted: Sequence[Canary]) -> list[CanaryEnd]:
        self._insist_on_watching()
        return await self._canaries.attend(wanted, self._term)

    # -- output ---------------------------------------------------------------------------------

    def logs(
        self, dispatch: Dispatch, rank: int, *, stderr: bool, follow: bool
    ) -> AsyncGenerator[bytes]:
        """Both streams are one: that is how containers are logged."""
        return self._output.logs(dispatch, rank, follow=follow)

    def shares_output(self, dispatch: Dispatch, *, stderr: bool) -> bool:
        return False

    async def attach(self, dispatch: Dispatch, rank: int) -> Attached | Replayed:
        raise NotImplementedYet(
            "terminals of jobs on Kubernetes are not carried out yet",
            f"`odcctl logs {dispatch.job_id} -f` follows what it writes.",
        )


def may_pass(error: ApiRefused) -> bool:
    """Quotas, rights and namespaces change; a pod that the API calls wrong stays so."""
    if error.passing or error.status in (401, 404, 409):
        return True
    if error.status != 403:
        return False
    # A server that has just begun does not know its roles yet.
    return "exceeded quota" in error.message or bool(_NO_RIGHT.search(error.message))


def _matters(node: Node) -> tuple[object, ...]:
    """What of a node the inventory goes by; its heartbeats change nothing."""
    ready = [(c.status, c.reason) for c in node.status.conditions if c.type == "Ready"]
    return (node.metadata.labels, node.metadata.deletion_timestamp, node.spec,
            node.status.allocatable, ready)  # fmt: skip


def _holds(pod: Pod | None) -> tuple[object, ...] | None:
    """What a pod of others takes of which node."""
    if pod is None or is_over(pod) or not pod.spec.node_name:
        return None
    return pod.spec.node_name, [c.resources.requests for c in pod.spec.containers]
