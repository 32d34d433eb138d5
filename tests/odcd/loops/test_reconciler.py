"""The data that the leader's loops keep while the database is busy."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from datetime import datetime, timedelta
from typing import Any, cast

import pytest

from odcd.clock import SystemClock
from odcd.errors import DatabaseBusy
from odcd.loops import facts as fact_writer
from odcd.loops import planner as planners
from odcd.loops import reconciler as reapers
from odcd.loops.lead import Lead, Pass
from odcd.loops.planner import Planner
from odcd.loops.reconciler import Reconciler
from odcd.records.dispatch import Dispatch, Fact
from tests.support.builders.dispatches import a_dispatch_of

CLOCK = SystemClock()
BUSY = "the database is busy"


class Executor:
    """Reports its facts once, like an executor whose facts were acknowledged."""

    reconciles = False
    keeps_time = True
    keeps_declared = True

    def __init__(self, facts: Sequence[Fact]) -> None:
        self.observed = 0
        self.acknowledged: list[Fact] = []
        self._facts = list(facts)

    async def observe(self) -> AsyncGenerator[list[Fact]]:
        self.observed += 1
        facts, self._facts = self._facts, []
        if facts:
            yield facts
        await asyncio.Event().wait()

    async def acknowledge(self, facts: Sequence[Fact]) -> None:
        self.acknowledged += facts


class BusyStore:
    """Fails the first call of each method."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.facts: list[Fact] = []
        self.whole = asyncio.Event()
        self._failed: set[str] = set()
        self.attempts = self.leader = self

    def _fail_once(self, what: str) -> None:
        if what not in self._failed:
            self._failed.add(what)
            raise DatabaseBusy(BUSY)

    async def record_facts(self, term: int, facts: Sequence[Fact], now: datetime) -> list[int]:
        self._fail_once("facts")
        if len(facts) > self.limit:
            raise DatabaseBusy(BUSY)
        self.facts += facts
        if len(self.facts) == 5:
            self.whole.set()
        return []

    async def take_stops(self, *_: object, **__: object) -> list[Any]:
        self._fail_once("stops")
        return []

    async def list_moved_ends(self, *_: object) -> list[Any]:
        return []

    async def sweep(self, *_: object, **__: object) -> None:
        self._fail_once("sweep")


def test_a_busy_database_loses_no_fact_and_restarts_no_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An executor that reported a fact may not report it again."""
    monkeypatch.setattr(reapers, "BUSY_RETRY_S", 0.01)

    async def work() -> None:
        facts = [Fact(job_id=n, attempt=1, rank=0, kind="exited", at=CLOCK.now()) for n in range(5)]
        executor, store = Executor(facts), BusyStore(limit=2)
        lead = cast(Any, type("Lead", (), {"term": 1})())
        reaper = Reconciler(
            cast(Lead, lead), cast(Any, store), cast(Any, executor), CLOCK,
            grace=timedelta(), node_grace=None, every=timedelta(seconds=30),
            on_change=lambda: None,
        )  # fmt: skip
        running = asyncio.create_task(reaper.run())
        async with asyncio.timeout(60):
            await store.whole.wait()
        assert not running.done()
        running.cancel()
        await asyncio.wait([running])
        assert [fact.job_id for fact in store.facts] == [0, 1, 2, 3, 4]
        assert executor.observed == 1

    asyncio.run(work())


def test_ends_are_recorded_before_the_starts_of_a_large_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Other jobs wait for the GPUs of a job that ended. Each attempt's facts stay in order."""
    monkeypatch.setattr(fact_writer, "BUSY_RETRY_S", 0.01)
    monkeypatch.setattr(fact_writer, "MAX_FACTS", 2)

    def fact(job_id: int, kind: Any, rank: int = 0) -> Fact:
        return Fact(job_id=job_id, attempt=1, rank=rank, kind=kind, at=CLOCK.now())

    facts = [
        fact(1, "started"), fact(2, "started"), fact(3, "started"), fact(3, "started", rank=1),
        fact(3, "exited"),
    ]  # fmt: skip

    async def work() -> None:
        executor, store = Executor(facts), BusyStore(limit=2)
        lead = cast(Any, type("Lead", (), {"term": 1})())
        reaper = Reconciler(
            cast(Lead, lead), cast(Any, store), cast(Any, executor), CLOCK,
            grace=timedelta(), node_grace=None, every=timedelta(seconds=30),
            on_change=lambda: None,
        )  # fmt: skip
        running = asyncio.create_task(reaper.run())
        async with asyncio.timeout(60):
            await store.whole.wait()
        running.cancel()
        await asyncio.wait([running])
        assert store.facts == [facts[2], facts[3], facts[4], facts[0], facts[1]]

    asyncio.run(work())


class BusyDispatches:
    """One pass that starts a job; its dispatch cannot be read at first."""

    term = 1

    def __init__(self) -> None:
        self.passes = 0
        self.sent = asyncio.Event()
        self._busy = True
        self._dispatch, self._texts = a_dispatch_of()

    async def plan_pass(self, now: datetime) -> Pass:
        self.passes += 1
        started = (self._dispatch.job_id,) if self.passes == 1 else ()
        return Pass(started=started, looked=1, more=False, next_at=None, decide_ms=0, took_ms=0)

    async def list_unstarted(self, *_: object) -> list[int]:
        return []

    async def list(self, *_: object) -> list[Dispatch]:
        if self._busy:
            self._busy = False
            raise DatabaseBusy(BUSY)
        return [self._dispatch]

    async def get_texts(self, digests: Sequence[str]) -> dict[str, str]:
        return {digest: self._texts[digest] for digest in digests}

    async def start(self, *_: object) -> None:
        self.sent.set()


def test_a_busy_database_keeps_no_started_job_from_being_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(planners, "BUSY_RETRY_S", 0.01)

    async def work() -> None:
        busy = cast(Any, BusyDispatches())
        planner = Planner(busy, busy, busy, CLOCK, timedelta(seconds=30))
        running = asyncio.create_task(planner.run())
        async with asyncio.timeout(60):
            await busy.sent.wait()
        assert not running.done()
        running.cancel()
        await asyncio.wait([running])

    asyncio.run(work())
