"""Start attempts: orders are carried out in the background, retried, and given up when they take
too long."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence, Set
from dataclasses import dataclass

from odcd.clock import Clock
from odcd.errors import RunnerDown
from odcd.executor.kubernetes import pod_state, status
from odcd.executor.kubernetes.api_retries import RETRY_S, insist, may_pass
from odcd.executor.kubernetes.background import Background
from odcd.executor.kubernetes.cluster import ApiRefused
from odcd.executor.kubernetes.cooldowns import Cooldowns
from odcd.executor.kubernetes.ends import Ends
from odcd.executor.kubernetes.image_pulls import DENIED_S
from odcd.executor.kubernetes.inventory import offer_of
from odcd.executor.kubernetes.members import Members
from odcd.executor.kubernetes.naming import NODE, Attempt, Key, has_disk
from odcd.executor.kubernetes.node_ports import addresses_of
from odcd.executor.kubernetes.objects import Node
from odcd.executor.kubernetes.pod_writer import PodWriter
from odcd.executor.output import PathTooLong
from odcd.isolation import Isolation, IsolationWatch, explain, is_at_fault
from odcd.records.dev_server import DevServerKeys
from odcd.records.dispatch import Dispatch

log = logging.getLogger(__name__)

WORKERS = 8
LEAD_LOOK_S = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """The time limits of a start, in seconds. schedule: until a node has accepted the pod; disk:
    added when its disk must be created first. start: until its container runs, which includes the
    image pull. ready: for a dev server, from then until SSH answers. denied: for which a registry
    must deny the image."""

    schedule_s: float = 60.0
    disk_s: float = 600.0
    start_s: float = 1800.0
    ready_s: float = 600.0
    denied_s: float = DENIED_S


EnsureKeys = Callable[[Dispatch], Awaitable[DevServerKeys | None]]
OnPort = Callable[[Dispatch, int, Sequence[str]], Awaitable[None]]


@dataclass(slots=True)
class _Order:
    dispatch: Dispatch
    texts: Mapping[str, str]
    since_s: float
    pause_s: float = RETRY_S[0]
    trouble: str | None = None
    """The error of the last try."""


class Starts:
    def __init__(
        self,
        members: Members,
        ends: Ends,
        nodes: Mapping[str, Node],
        pod_writer: PodWriter,
        background: Background,
        clock: Clock,
        leads: Callable[[], bool],
        budgets: Budgets,
        ensure_keys: EnsureKeys,
        on_port: OnPort,
        cooldowns: Cooldowns,
        watch: IsolationWatch | None = None,
    ) -> None:
        """leads: whether it is certain that no other daemon leads. ensure_keys: returns the keys of
        a dev server, which are made if it has none; None: it has ended. on_port: called with a dev
        server's port and the addresses of its nodes."""
        self._members = members
        self._ends = ends
        self._nodes = nodes
        self._pod_writer = pod_writer
        self._background = background
        self._clock = clock
        self._leads = leads
        self._budgets = budgets
        self._ensure_keys = ensure_keys
        self._on_port = on_port
        self._cooldowns = cooldowns
        self._isolation = Isolation[Attempt]("starts", clock, watch)
        self._judged = Isolation[Key]("starts", clock, watch)
        self._orders: dict[Attempt, _Order] = {}
        self._queue: asyncio.Queue[Attempt] = asyncio.Queue()
        self._made: set[Attempt] = set()

    @property
    def ordered(self) -> Set[Attempt]:
        """The attempts whose pods are not created yet."""
        return self._orders.keys()

    def order(self, dispatches: Sequence[Dispatch], texts: Mapping[str, str]) -> None:
        """See Executor.start."""
        for dispatch in dispatches:
            attempt = dispatch.key
            self._members.expect(dispatch)
            if attempt in self._made and self._members.are_there(dispatch):
                continue
            named = {
                digest: texts[digest]
                for digest in (dispatch.script_digest, dispatch.environment_digest)
            }
            order = self._orders.get(attempt)
            if order is None:
                self._orders[attempt] = _Order(dispatch, named, self._clock.monotonic())
                self._queue.put_nowait(attempt)
            else:
                # Sent again: neither its time limit nor its retry pause starts over.
                order.dispatch, order.texts = dispatch, named

    def withdraw(self, attempt: Attempt) -> None:
        self._orders.pop(attempt, None)

    def trim(self, live: Set[Attempt]) -> None:
        """Forget all attempts except these."""
        self._made &= live

    def works(self) -> dict[str, Callable[[], Coroutine[object, object, None]]]:
        """The loops that carry out the orders, by name; they run until cancelled."""
        return {f"starts-{number}": self._work for number in range(WORKERS)}

    async def _work(self) -> None:
        while True:
            attempt = await self._queue.get()
            while not self._leads():
                # This daemon may have just resumed from a suspension, and its orders may be
                # outdated.
                await self._clock.sleep(LEAD_LOOK_S)
            order = self._orders.get(attempt)
            if order is None or attempt in self._members.stops:
                self.withdraw(attempt)
                continue
            try:
                await self._make(order)
                self._made.add(attempt)
                self.withdraw(attempt)
                if attempt in self._members.stops:
                    await self._ends.confirm(attempt)
            except RunnerDown as error:
                log.warning(
                    "kubernetes.not_created",
                    extra={**order.dispatch.log_facts, "why": error.message},
                )
                order.trouble = error.message
                self._try_again(order, None)
            except ApiRefused as error:
                log.warning(
                    "kubernetes.refused", extra={**order.dispatch.log_facts, "why": str(error)}
                )
                waited_s = self._clock.monotonic() - order.since_s
                order.trouble = error.message
                if may_pass(error) and waited_s < self._budgets.schedule_s:
                    self._try_again(order, error.retry_after_s)
                else:
                    self.withdraw(attempt)
                    await self._undo(order.dispatch, error.message, passing=may_pass(error))
            except PathTooLong as error:
                self.withdraw(attempt)
                await self._undo(order.dispatch, error.message, passing=False)
            except Exception as error:
                self.withdraw(attempt)
                if not is_at_fault(error):
                    raise
                self._isolation.report(attempt, error, job_id=attempt[0])
                why = f"odc could not make its pods: {explain(error)}"
                await self._undo(order.dispatch, why, passing=False)

    async def _make(self, order: _Order) -> None:
        dispatch, members = order.dispatch, self._members
        offers = {m.node: offer_of(self._nodes.get(m.node)) for m in dispatch.members}
        keys = [(*dispatch.key, m.rank) for m in dispatch.members]
        but = {key[2] for key in keys if key in members.begun or key in members.over}
        keys = None
        if dispatch.is_dev_server:
            keys = await self._ensure_keys(dispatch)
            if keys is None:
                return
        port = await self._pod_writer.make(dispatch, order.texts, offers, but, keys)
        if port is not None:
            await self._on_port(dispatch, port, addresses_of(dispatch, self._nodes))

    def _try_again(self, order: _Order, after_s: float | None) -> None:
        pause_s = order.pause_s if after_s is None else max(after_s, order.pause_s)
        order.pause_s = min(order.pause_s * 2, RETRY_S[1])

        async def later() -> None:
            await self._clock.sleep(pause_s)
            self._queue.put_nowait(order.dispatch.key)

        self._background.spawn(later())

    async def _undo(self, dispatch: Dispatch, why: str, *, passing: bool) -> None:
        """The API server rejected the attempt: remove the objects that exist, and record the
        reason."""
        now = self._clock.now()
        for member in dispatch.members:
            key = (*dispatch.key, member.rank)
            if member.state != "starting" or key in self._members.over:
                continue
            fact = status.refused(key, now, why, passing=passing)
            pod = await insist(self._clock, lambda key=key: self._pod_writer.find_member(key))
            if pod is None:
                self._members.end(key, fact)
            else:
                self._members.verdicts.setdefault(key, fact)
                await insist(self._clock, lambda pod=pod: self._pod_writer.remove(pod, 0))

    def waits(self, job_id: int) -> list[str]:
        """The reasons why pods are not created or have not started."""
        reasons = [
            f"its pods cannot be created yet: {order.trouble}"
            for attempt, order in self._orders.items()
            if attempt[0] == job_id and order.trouble
        ]
        for key in sorted(key for key in self._members.unstarted if key[0] == job_id):
            pod = self._members.pod(key)
            if pod is not None:
                why = (
                    status.read_pod(pod, key, self._clock.now()).waits
                    or "kubelet has reported nothing"
                )
                reasons.append(f"rank {key[2]} on {pod.spec.node_name or 'no node yet'}: {why}")
        return reasons

    def judge(self) -> None:
        """Give up starts that exceed their time limit."""
        for key in self._members.denials.keys:
            pod = self._members.pod(key)
            if pod is not None:
                self._ends.look(pod, key)
        for key in list(self._members.unstarted):
            with self._judged.guard(key, job_id=key[0]):
                self._judge(key)

    def _judge(self, key: Key) -> None:
        pod, now = self._members.pod(key), self._clock.now()
        if pod is None or pod.metadata.deletion_timestamp is not None:
            return
        age_s = (now - (pod.metadata.creation_timestamp or now)).total_seconds()
        budget_s = self._budgets.start_s if pod.spec.node_name else self._budgets.schedule_s
        if has_disk(pod) and not pod.spec.node_name:
            budget_s += self._budgets.disk_s
        begun_at = pod_state.running_since(pod)
        if begun_at is not None:
            age_s, budget_s = (now - begun_at).total_seconds(), self._budgets.ready_s
        if age_s > budget_s:
            waits = status.read_pod(pod, key, now).waits
            late = status.late(pod, key, now, waits, budget_s)
            if late.cause == "unscheduled" and late.suspect and waits is not None:
                self._cooldowns.begin(pod.metadata.annotations.get(NODE, ""), waits)
            self._ends.condemn(pod, key, late)
