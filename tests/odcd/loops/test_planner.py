"""When the planner makes a pass, and when it repeats unanswered starts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from odcd.clock import Clock, SystemClock
from odcd.errors import RunnerDown
from odcd.loops import planner as planners
from odcd.loops.lead import Lead, Pass
from odcd.loops.planner import Planner
from odcd.records.dispatch import Dispatch
from tests.support.builders.dispatches import a_dispatch_of
from tests.support.fakes.clock import VirtualClock

CLOCK = SystemClock()


class Counting:
    """A leadership whose passes start nothing and return the time of the next possible start."""

    def __init__(self, after_s: float | None) -> None:
        self.at: list[datetime] = []
        self.next_at: datetime | None = None
        self.reached = asyncio.Event()
        self._after_s = after_s

    async def plan_pass(self, now: datetime) -> Pass:
        self.at.append(now)
        if self.next_at is None and self._after_s is not None:
            self.next_at = now + timedelta(seconds=self._after_s)
        ahead = self.next_at if self.next_at is not None and self.next_at > now else None
        if self.next_at is not None and ahead is None:
            self.reached.set()
        return Pass(started=(), looked=0, more=False, next_at=ahead, decide_ms=0, took_ms=0)


class NothingUnstarted:
    async def list_unstarted(self, *_: object) -> list[int]:
        return []


def planner(lead: Counting) -> Planner:
    cast(Any, lead).term = 1
    nobody = cast(Any, NothingUnstarted())
    return Planner(cast(Lead, lead), nobody, nobody, CLOCK, timedelta(seconds=60))


def test_a_pass_runs_when_a_job_can_start_by_time() -> None:
    async def work() -> None:
        lead = Counting(after_s=0.3)
        running = asyncio.create_task(planner(lead).run())
        async with asyncio.timeout(30):
            await lead.reached.wait()
        running.cancel()
        assert len(lead.at) <= 4, "it does not spin until then"

    asyncio.run(work())


def test_without_a_time_to_start_the_planner_waits_to_be_woken() -> None:
    async def work() -> None:
        lead = Counting(after_s=None)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await planner(lead).run()
        assert len(lead.at) == 1

    asyncio.run(work())


class Unanswered:
    """A job that was sent and never reported as started: its store, and its executor."""

    def __init__(self) -> None:
        self.sent = 0
        self.reached = asyncio.Event()
        self.down = False
        self._dispatch, self._texts = a_dispatch_of()

    async def list_unstarted(self, *_: object) -> list[int]:
        return [self._dispatch.job_id]

    async def list(self, *_: object) -> list[Dispatch]:
        return [self._dispatch]

    async def get_texts(self, digests: Sequence[str]) -> Mapping[str, str]:
        return {digest: self._texts[digest] for digest in digests}

    async def start(self, *_: object) -> None:
        self.sent += 1
        self.reached.set()
        if self.down:
            raise RunnerDown("nobody is there")

    def planner(self, clock: Clock) -> Planner:
        lead = Counting(after_s=None)
        cast(Any, lead).term = 1
        both = cast(Any, self)
        return Planner(cast(Lead, lead), both, both, clock, timedelta(seconds=30))


def test_an_unanswered_start_is_resent_during_frequent_passes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The sweep requests passes as often as they would run without it, and so do submits."""
    monkeypatch.setattr(planners, "RESEND_AFTER", timedelta(seconds=0.05))

    async def work() -> None:
        unanswered = Unanswered()
        planner = unanswered.planner(CLOCK)

        async def wake() -> None:
            while True:
                planner.wake()
                await asyncio.sleep(0.01)

        running = [asyncio.create_task(planner.run()), asyncio.create_task(wake())]
        try:
            async with asyncio.timeout(60):
                await unanswered.reached.wait()
        finally:
            for task in running:
                task.cancel()
            await asyncio.wait(running)

    asyncio.run(work())


def test_a_resent_start_has_time_before_the_next_resend() -> None:
    async def work() -> None:
        clock, unanswered = VirtualClock(datetime(2026, 1, 1, tzinfo=UTC)), Unanswered()
        planner = unanswered.planner(clock)
        for seconds, sent in ((0, 1), (5, 1), (24, 1), (1, 2), (29, 2), (1, 3)):
            clock.move(seconds)
            await planner.resend_once()
            assert unanswered.sent == sent

    asyncio.run(work())


def test_a_start_that_was_not_accepted_is_resent_at_the_next_check() -> None:
    async def work() -> None:
        clock, unanswered = VirtualClock(datetime(2026, 1, 1, tzinfo=UTC)), Unanswered()
        planner = unanswered.planner(clock)
        unanswered.down = True
        await planner.resend_once()
        unanswered.down = False
        await planner.resend_once()
        await planner.resend_once()
        assert unanswered.sent == 2

    asyncio.run(work())
