"""When the planner makes a pass."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import Any, cast

import pytest

from odcd.clock import SystemClock
from odcd.leader import Lead, Pass
from odcd.planner import Planner

CLOCK = SystemClock()


class Counting:
    """A leadership whose passes start nothing and say when the next may."""

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
    async def unstarted(self, *_: object) -> list[int]:
        return []


def planner(lead: Counting) -> Planner:
    cast(Any, lead).term = 1
    nobody = cast(Any, NothingUnstarted())
    return Planner(cast(Lead, lead), nobody, nobody, CLOCK, timedelta(seconds=60))


def test_a_pass_is_made_when_time_lets_a_job_start() -> None:
    async def work() -> None:
        lead = Counting(after_s=0.3)
        running = asyncio.create_task(planner(lead).run())
        async with asyncio.timeout(30):
            await lead.reached.wait()
        running.cancel()
        assert len(lead.at) <= 4, "it does not spin until then"

    asyncio.run(work())


def test_without_such_a_moment_it_waits_to_be_woken() -> None:
    async def work() -> None:
        lead = Counting(after_s=None)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.5):
                await planner(lead).run()
        assert len(lead.at) == 1

    asyncio.run(work())
