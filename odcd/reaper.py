"""End what is to end, and write down what ended. Runs on the leader only."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable
from datetime import timedelta

from odcd.clock import Clock
from odcd.errors import RunnerDown
from odcd.executor.base import Executor
from odcd.leader import Lead
from odcd.store import Store

log = logging.getLogger(__name__)

MIN_GAP_S = 0.05
"""Between two looks for what is to end: each is a transaction, and every submit calls for one."""
MAX_GATHER_S = 0.05
"""The longest that facts are let gather before they are written together."""


class Reaper:
    """Three loops: facts of the executor into the database, the database's wishes to the executor,
    and what time alone does."""

    def __init__(
        self,
        lead: Lead,
        store: Store,
        executor: Executor,
        clock: Clock,
        *,
        grace: timedelta,
        every: timedelta,
        on_change: Callable[[], None],
    ) -> None:
        self._lead = lead
        self._store = store
        self._executor = executor
        self._clock = clock
        self._grace = grace
        self._every = every
        self._on_change = on_change
        self._wake = asyncio.Event()

    def wake(self) -> None:
        self._wake.set()

    async def run(self) -> None:
        """Raises LeadershipLost or DatabaseDown."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._record(), name="record-facts")
            group.create_task(self._carry_out(), name="carry-out")
            group.create_task(self._sweep(), name="sweep")

    async def _record(self) -> None:
        async for facts in self._executor.observe():
            begun = self._clock.monotonic()
            ended = await self._store.record_facts(self._lead.term, facts, self._clock.now())
            await self._executor.acknowledge(facts)
            # One member of a gang that failed leaves others to be stopped.
            self._wake.set()
            if ended:
                log.info("reap.ended", extra={"jobs": len(ended)})
                self._on_change()
            # A transaction costs the same for one fact and for many: when they come thick, let
            # some gather.
            took_s = self._clock.monotonic() - begun
            if took_s > 0:
                await self._clock.sleep(min(2 * took_s, MAX_GATHER_S))

    async def _carry_out(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self.carry_out_once()
            except RunnerDown as error:
                log.error("reap.runner_down", extra={"why": error.message})
            await self._clock.sleep(MIN_GAP_S)
            try:
                async with asyncio.timeout(self._every.total_seconds()):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def carry_out_once(self) -> None:
        """Tell the executor which attempts are to end, and which time limits moved."""
        for stop in await self._store.stops(self._lead.term, self._clock.now()):
            log.info(
                "reap.stop",
                extra={"job_id": stop.job_id, "attempt": stop.attempt, "intent": stop.intent},
            )
            await self._executor.stop(
                stop.job_id,
                stop.attempt,
                signal=signal.SIGTERM,
                grace_s=self._grace.total_seconds() if stop.grace_s is None else stop.grace_s,
            )
        for job_id, attempt, ends_at in await self._store.moved_ends(self._lead.term):
            await self._executor.set_end(job_id, attempt, ends_at)

    async def _sweep(self) -> None:
        while True:
            now = self._clock.now()
            due = await self._store.sweep(self._lead.term, now)
            self._on_change()
            self._wake.set()
            wait_s = self._every.total_seconds()
            if due is not None:
                wait_s = min(wait_s, max(0.05, (due - now).total_seconds()))
            await self._clock.sleep(wait_s)
