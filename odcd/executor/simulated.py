"""An executor that runs nothing: attempts end after run times that its user chooses, on any clock.

A simulation steps it by hand: next_at() is the time of the next event, take(now) returns what has
happened. It can also simulate faults: lose() a node, or be away for a while.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import signal as signals
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Literal

from odcd.clock import Clock
from odcd.errors import LeadershipLost, RunnerDown
from odcd.executor.base import Expected
from odcd.executor.simulated_dev_servers import SimulatedDevServers
from odcd.records.dispatch import Dispatch, Fact
from odcd.records.node import Canary, CanaryEnd, NodeReport

Key = tuple[int, int, int]
"""Job, attempt, rank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How an attempt ends if nothing interrupts it, and after how long."""

    seconds: float
    exit_code: int = 0
    outcome: Literal["exited", "lost", "start_failed"] = "exited"
    start_s: float = 0.0
    """Time from the dispatch until the process runs."""


@dataclass(slots=True)
class _Member:
    own: Fact
    """How it ends if nothing interrupts it."""
    fact: Fact
    """The last fact that will be reported about it, unless something ends it earlier."""
    node: str
    starts_at: datetime
    limit: datetime | None
    version: int = 0
    reported_start: bool = False
    stopping: bool = field(default=False)


class SimulatedExecutor:
    """Implements odcd.executor.base.Executor. started: how often each member was started."""

    name = "simulated"
    steps = None
    keeps_time = True
    keeps_declared = True
    reconciles = False

    def __init__(
        self,
        clock: Clock,
        run_of: Callable[[Dispatch], Run],
        nodes: Sequence[NodeReport] = (),
        grace_s: float = 1.0,
    ) -> None:
        self.dev_servers = SimulatedDevServers()
        self._clock = clock
        self._run_of = run_of
        self._nodes = list(nodes)
        self._grace_s = grace_s
        self._term = 0
        self._members: dict[Key, _Member] = {}
        self._ended: dict[Key, Fact] = {}
        self._ranks: dict[tuple[int, int], int] = {}
        self._heap: list[tuple[datetime, int, Key, int]] = []
        self._order = itertools.count()
        self._unreported: list[Fact] = []
        self._changed = asyncio.Event()
        self.away = False
        self.started: dict[Key, int] = {}

    async def open(self, term: int) -> None:
        self._reach(term)

    async def start(self, dispatches: Sequence[Dispatch], texts: Mapping[str, str]) -> None:
        for dispatch in dispatches:
            self._ranks[dispatch.key] = len(dispatch.members)
            self._reach(dispatch.term)
            run = self._run_of(dispatch)
            now = self._clock.now()
            begins = now + timedelta(seconds=run.start_s)
            for member in dispatch.members:
                key = (dispatch.job_id, dispatch.attempt, member.rank)
                if key in self._members or key in self._ended or member.state != "starting":
                    continue
                self.started[key] = self.started.get(key, 0) + 1
                self._add(key, dispatch, member.node, begins, run)

    def _add(self, key: Key, dispatch: Dispatch, node: str, begins: datetime, run: Run) -> None:
        ends = begins + timedelta(seconds=run.seconds)
        fact = Fact(
            job_id=key[0],
            attempt=key[1],
            rank=key[2],
            kind=run.outcome,
            at=begins if run.outcome == "start_failed" else ends,
            exit_code=run.exit_code if run.outcome == "exited" else None,
        )
        member = _Member(own=fact, fact=fact, node=node, starts_at=begins, limit=dispatch.ends_at)
        self._members[key] = member
        self._limit(member)
        if run.outcome != "start_failed":
            self._push(begins, key, -1)
        self._schedule(key)

    def _limit(self, member: _Member) -> None:
        """A time limit before the member's own end makes that end a timeout."""
        member.fact = member.own
        if member.limit is not None and member.own.at > member.limit:
            member.fact = replace(
                member.own,
                kind="exited",
                at=max(member.limit, member.starts_at),
                exit_code=None,
                signal=int(signals.SIGTERM),
                cause="timeout",
            )

    async def stop(
        self, job_id: int, attempt: int, *, signal: int, grace_s: float, again: bool = False
    ) -> None:
        self._reach(self._term)
        known = [key for key in self._members if key[:2] == (job_id, attempt)]
        for rank in range(self._ranks.get((job_id, attempt), 1)):
            if (job_id, attempt, rank) not in known and (job_id, attempt, rank) not in self._ended:
                now = self._clock.now()
                self._say(Fact(job_id=job_id, attempt=attempt, rank=rank, kind="lost", at=now))
        for key in known:
            member = self._members[key]
            at = self._clock.now() + timedelta(seconds=min(self._grace_s, grace_s))
            if member.stopping or member.fact.at <= at:
                continue
            member.stopping = True
            member.fact = replace(
                member.fact, kind="exited", at=at, exit_code=None, signal=signal, cause=None
            )
            self._schedule(key)

    async def signal(
        self, job_id: int, attempt: int, *, signal: int, batch_only: bool, rank: int | None = None
    ) -> None:
        self._reach(self._term)

    async def set_end(self, job_id: int, attempt: int, ends_at: datetime | None) -> None:
        self._reach(self._term)
        for key, member in self._members.items():
            if key[:2] == (job_id, attempt) and not member.stopping:
                member.limit = ends_at
                self._limit(member)
                self._schedule(key)

    async def adopt(self, read_expected: Callable[[], Awaitable[Sequence[Expected]]]) -> None:
        expected = [(job, attempt, rank) for job, attempt, rank, _ in await read_expected()]
        self._reach(self._term)
        now = self._clock.now()
        for key in expected:
            self._ranks[key[:2]] = max(key[2] + 1, self._ranks.get(key[:2], 0))
            if key in self._ended:
                self._say(self._ended[key])
            elif key not in self._members:
                self._say(Fact(job_id=key[0], attempt=key[1], rank=key[2], kind="lost", at=now))
            elif self._members[key].reported_start:
                self._say(Fact(job_id=key[0], attempt=key[1], rank=key[2], kind="started", at=now))
        for key in set(self._members) - set(expected):
            del self._members[key]

    async def observe(self) -> AsyncGenerator[list[Fact]]:
        while True:
            facts = self.take(self._clock.now())
            if facts:
                yield facts
                continue
            self._changed.clear()
            due = self.next_at()
            wait_s = 3600.0 if due is None else (due - self._clock.now()).total_seconds()
            sleeping = asyncio.ensure_future(self._clock.sleep(max(0.0, wait_s)))
            waking = asyncio.ensure_future(self._changed.wait())
            await asyncio.wait({sleeping, waking}, return_when=asyncio.FIRST_COMPLETED)
            sleeping.cancel()
            waking.cancel()

    async def acknowledge(self, facts: Sequence[Fact]) -> None:
        for fact in facts:
            if fact.kind != "started":
                self._ended.pop((fact.job_id, fact.attempt, fact.rank), None)

    async def inventory(self) -> list[NodeReport]:
        self._reach(self._term)
        return list(self._nodes)

    def waits(self, job_id: int) -> list[str]:
        """Empty: a job starts at once here, or fails."""
        return []

    @property
    def unreached_s(self) -> float:
        return 0.0

    def placed(self) -> Mapping[str, Sequence[int]]:
        return {}

    async def nodes_changed(self) -> None:
        """Never returns."""
        await asyncio.Event().wait()

    async def try_nodes(self, canaries: Sequence[Canary]) -> list[CanaryEnd]:
        return []  # canaries are never requested here

    async def logs(
        self, dispatch: Dispatch, rank: int, *, stderr: bool, follow: bool
    ) -> AsyncGenerator[bytes]:
        for nothing in ():
            yield nothing

    def shares_output(self, dispatch: Dispatch, *, stderr: bool) -> bool:
        return False

    async def close(self) -> None:
        self._changed.set()

    # -- by hand --------------------------------------------------------------------------------

    def next_at(self) -> datetime | None:
        """When the next event happens; None while nothing runs."""
        if self._unreported:
            return self._clock.now()
        while self._heap:
            at, _, key, version = self._heap[0]
            member = self._members.get(key)
            if member is None or version not in (-1, member.version):
                heapq.heappop(self._heap)
                continue
            return at
        return None

    def take(self, now: datetime) -> list[Fact]:
        """The facts that happened until now and have not been reported."""
        facts, self._unreported = self._unreported, []
        while self._heap and self._heap[0][0] <= now:
            at, _, key, version = heapq.heappop(self._heap)
            member = self._members.get(key)
            if member is None or version not in (-1, member.version):
                continue
            if version == -1:
                member.reported_start = True
                facts.append(
                    Fact(job_id=key[0], attempt=key[1], rank=key[2], kind="started", at=at)
                )
            else:
                facts.append(member.fact)
                self._ended[key] = member.fact
                del self._members[key]
        return facts

    def lose(self, node: str) -> None:
        """The node fails, with all members that ran on it."""
        now = self._clock.now()
        for key, member in list(self._members.items()):
            if member.node == node:
                member.stopping = True
                member.fact = replace(
                    member.fact, kind="lost", at=now, exit_code=None, signal=None, cause=None
                )
                self._schedule(key)

    def _reach(self, term: int) -> None:
        if self.away:
            raise RunnerDown("the simulated executor does not answer", "It will answer again.")
        if term < self._term:
            raise LeadershipLost(f"term {term} is over: the current term is {self._term}")
        self._term = term

    def _schedule(self, key: Key) -> None:
        member = self._members[key]
        member.version += 1
        self._push(member.fact.at, key, member.version)

    def _push(self, at: datetime, key: Key, version: int) -> None:
        heapq.heappush(self._heap, (at, next(self._order), key, version))
        self._changed.set()

    def _say(self, fact: Fact) -> None:
        self._unreported.append(fact)
        self._changed.set()
