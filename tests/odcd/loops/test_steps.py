"""The leader records the ends of steps that no client records."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from odcd.executor.link import RunnerRefused
from odcd.loops.steps import START_S, StepRecorder
from odcd.records.step import StepEnd, StepKey

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)
END = {"e": "ended", "state": "FAILED", "code": 3, "at": NOW.timestamp()}


class Clock:
    def now(self) -> datetime:
        return NOW


class Store:
    def __init__(self, live: dict[StepKey, datetime]) -> None:
        self.live = live
        self.ends: list[StepEnd] = []

    async def list(self, *, live: bool) -> list[dict[str, Any]]:
        assert live
        return [
            {"job_id": key[0], "attempt": key[1], "step": key[2], "started_at": at}
            for key, at in self.live.items()
        ]

    async def end(self, term: int, ends: Sequence[StepEnd], now: datetime) -> None:
        self.ends += ends


class Runner:
    """The steps of an executor, and the executor itself."""

    def __init__(self, known: dict[StepKey, dict[str, Any] | None], *, old: bool = False) -> None:
        self.known = known
        self.old = old
        self.acknowledged: list[StepKey] = []
        self.steps = self

    async def list(self, keys: Sequence[StepKey]) -> dict[StepKey, dict[str, Any] | None]:
        if self.old:
            raise RunnerRefused("bad_request", "no such operation: list_steps")
        return {
            key: end for key, end in self.known.items()
            if key in keys or (end is not None and key not in self.acknowledged)
        }  # fmt: skip

    async def acknowledge(self, key: StepKey, *, forget: bool) -> None:
        self.acknowledged.append(key)


def recorder(store: Store, runner: Runner) -> StepRecorder:
    any_clock, any_store, any_runner = (cast("Any", one) for one in (Clock(), store, runner))
    return StepRecorder(0, any_store, any_runner, any_clock, lambda _: None)


def test_an_end_without_an_open_row_is_recorded_and_acknowledged() -> None:
    """Before: a step that was closed with its job never got its exit code, and the runner kept it
    forever, also after each of its restarts."""

    async def work() -> None:
        store, runner = Store({}), Runner({(7, 1, 0): END})
        assert await recorder(store, runner).look_once() == 1
        assert [(end.job_id, end.exit_code) for end in store.ends] == [(7, 3)]
        assert runner.acknowledged == [(7, 1, 0)]
        assert await recorder(store, runner).look_once() == 0

    asyncio.run(work())


def test_a_step_that_was_never_started_is_lost_after_a_time() -> None:
    async def work() -> None:
        late, early = NOW - timedelta(seconds=START_S + 1), NOW
        store = Store({(7, 1, 0): late, (7, 1, 1): early, (7, 1, 2): late})
        await recorder(store, Runner({(7, 1, 2): None})).look_once()
        assert [(end.step, end.state) for end in store.ends] == [(0, "NODE_FAIL")]

    asyncio.run(work())


def test_a_runner_of_an_earlier_release_knows_no_steps() -> None:
    async def work() -> None:
        store = Store({(7, 1, 0): NOW - timedelta(seconds=START_S + 1)})
        await recorder(store, Runner({}, old=True)).look_once()
        assert [(end.step, end.state) for end in store.ends] == [(0, "NODE_FAIL")]

    asyncio.run(work())
