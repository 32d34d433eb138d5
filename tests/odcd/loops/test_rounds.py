"""The base of the leader's loops: when rounds begin, and what one failed job does."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest
from prometheus_client import CollectorRegistry

from odcd.clock import SystemClock
from odcd.errors import LeadershipLost, RunnerDown
from odcd.loops.rounds import Rounds
from odcd.metrics.calls import RoundMetrics

Round = Callable[["Counted"], Awaitable[float | None]]


class Counted(Rounds):
    name = "counted"

    def __init__(
        self,
        work: Round,
        every: timedelta = timedelta(hours=1),
        metrics: RoundMetrics | None = None,
    ) -> None:
        super().__init__(SystemClock(), every, metrics)
        self.rounds = 0
        self._work = work

    async def run_once(self) -> float | None:
        self.rounds += 1
        return await self._work(self)


def run_until(loop: Counted, rounds: int) -> None:
    async def work() -> None:
        task = asyncio.create_task(loop.run())
        try:
            async with asyncio.timeout(30):
                while loop.rounds < rounds:
                    await asyncio.sleep(0.005)
        finally:
            task.cancel()

    asyncio.run(work())


async def nothing(_: Counted) -> None:
    return None


def test_rounds_repeat_without_being_woken() -> None:
    """At the interval, or earlier if a round says so."""

    async def soon(_: Counted) -> float:
        return 0.01

    run_until(Counted(soon), 3)


def test_a_loop_that_is_woken_during_a_round_starts_another_at_once() -> None:
    async def changes(loop: Counted) -> None:
        if loop.rounds < 4:
            loop.wake()

    loop = Counted(changes)
    run_until(loop, 4)
    assert loop.rounds == 4


def test_the_interval_counts_from_the_start_of_a_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """A round that takes longer is followed by a short rest, not by the whole interval."""
    monkeypatch.setattr("odcd.loops.rounds.MIN_REST_S", 0.01)

    async def slow(_: Counted) -> None:
        await asyncio.sleep(0.05)

    loop = Counted(slow, timedelta(seconds=0.05))
    run_until(loop, 5)


def test_a_job_that_cannot_be_reached_is_logged_and_counted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    registry = CollectorRegistry()

    async def away() -> None:
        raise RunnerDown("it is away")

    async def reach(loop: Counted) -> float:
        with pytest.raises(RunnerDown):
            await loop.reach(7, away())
        return 0.001

    caplog.set_level(logging.WARNING)
    run_until(Counted(reach, metrics=RoundMetrics(registry)), 2)
    facts = next(r.__dict__ for r in caplog.records if r.message == "loop.failed")
    assert (facts["loop"], facts["job_id"], facts["why"]) == ("counted", 7, "it is away")
    labels = {"loop": "counted"}
    assert (registry.get_sample_value("odcd_leader_round_failures_total", labels) or 0) >= 1
    assert (registry.get_sample_value("odcd_leader_round_seconds_count", labels) or 0) >= 1


def test_the_metrics_of_failures_begin_at_zero() -> None:
    registry = CollectorRegistry()
    run_until(Counted(nothing, timedelta(seconds=0.01), RoundMetrics(registry)), 1)
    found = registry.get_sample_value("odcd_leader_round_failures_total", {"loop": "counted"})
    assert found == 0


def test_any_other_error_ends_the_loop() -> None:
    async def lost(_: Counted) -> None:
        raise LeadershipLost("another leads")

    with pytest.raises(LeadershipLost):
        asyncio.run(Counted(lost).run())
