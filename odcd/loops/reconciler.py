"""End the jobs that must end, and record the jobs that ended. Runs on the leader only."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable
from datetime import datetime, timedelta

from odcd.clock import Clock
from odcd.errors import DatabaseBusy, OdcError, RunnerDown
from odcd.executor.base import Executor
from odcd.isolation import Isolation, IsolationWatch, is_at_fault, keep
from odcd.loops.facts import BUSY_RETRY_S, FactWriter
from odcd.loops.lead import Lead
from odcd.loops.sweeps import Sweeps
from odcd.records.dispatch import Stop
from odcd.stores.store import Store

log = logging.getLogger(__name__)

MIN_GAP_S = 0.05
"""The minimum between two checks for jobs to end: each check is a transaction, and every submit
triggers one."""
MAX_GATHER_S = 0.05
"""The maximum time for which facts are collected before they are written together."""
MIN_SWEEP_GAP_S = 0.5
"""The minimum between two sweeps that are triggered by job starts."""
AGAIN_S = 5.0
"""The time between two checks for facts to write again."""

MovedEnd = tuple[int, int, datetime | None]
"""Job, attempt, and its new end."""


class Reconciler:
    """Three loops: write the executor's facts to the database, pass the database's orders to the
    executor, and run the timed work (sweep)."""

    def __init__(
        self,
        lead: Lead,
        store: Store,
        executor: Executor,
        clock: Clock,
        *,
        grace: timedelta,
        node_grace: timedelta | None,
        every: timedelta,
        on_change: Callable[[], None],
        quarantine: bool = False,
        canaries: bool = True,
        stale_after: timedelta | None = None,
        watch: IsolationWatch | None = None,
    ) -> None:
        """quarantine: whether nodes on which jobs keep failing are quarantined; canaries: whether
        these can be tested. stale_after: dev servers that have waited this long are cancelled."""
        self._lead = lead
        self._store = store
        self._executor = executor
        self._clock = clock
        self._grace = grace
        self._every = every
        self._on_change = on_change
        self._watch = watch
        self._facts = FactWriter(lead.term, store.attempts, clock, on_change, watch)
        self._sweeps = Sweeps(
            lead.term, store.leader, clock, keeps_time=executor.keeps_time, node_grace=node_grace,
            quarantine=quarantine, canaries=canaries, stale_after=stale_after, watch=watch,
        )  # fmt: skip
        self._stops = Isolation[Stop](
            "stops", clock, watch, key=lambda stop: (stop.job_id, stop.attempt)
        )
        self._ends = Isolation[MovedEnd]("stops", clock, watch)
        self._signals = Isolation[int]("signals", clock, watch)
        self._fresh = True
        self._wake = asyncio.Event()
        self._begun = asyncio.Event()

    def wake(self) -> None:
        self._wake.set()

    def note_starts(self) -> None:
        """Called when jobs have started: one of them may end before the next planned sweep."""
        if not self._executor.keeps_time:
            self._begun.set()

    async def run(self) -> None:
        """Raises LeadershipLost or DatabaseDown."""
        loops = {
            "record-facts": self._record, "facts-again": self._record_again,
            "carry-out": self._carry_out, "sweep": self._sweep,
        }  # fmt: skip
        async with asyncio.TaskGroup() as group:
            # No task ends because of an item or a busy database: that would end the others and lose
            # what they have in memory.
            for name, loop in loops.items():
                group.create_task(keep(name, loop, self._clock, self._watch), name=name)

    async def _record(self) -> None:
        async for facts in self._executor.observe():
            begun = self._clock.monotonic()
            await self._executor.acknowledge(await self._facts.write(facts))
            # If one member of a gang failed, the others must be stopped.
            self._wake.set()
            # A transaction costs the same for one fact and for many: under load, collect several.
            took_s = self._clock.monotonic() - begun
            if took_s > 0:
                await self._clock.sleep(min(took_s, MAX_GATHER_S))

    async def _record_again(self) -> None:
        while True:
            await self._clock.sleep(AGAIN_S)
            if done := await self._facts.write_again():
                try:
                    await self._executor.acknowledge(done)
                except RunnerDown as error:
                    log.warning("reconcile.runner_down", extra={"why": error.message})
                self._wake.set()

    async def _carry_out(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self.carry_out_once()
            except RunnerDown as error:
                log.error("reconcile.runner_down", extra={"why": error.message})
            except DatabaseBusy as error:
                log.warning("reconcile.busy", extra={"why": error.message})
                self._wake.set()
                await self._clock.sleep(BUSY_RETRY_S)
            await self._clock.sleep(MIN_GAP_S)
            try:
                async with asyncio.timeout(self._every.total_seconds()):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def carry_out_once(self) -> None:
        """Send the executor the attempts to end and the changed time limits."""
        again, self._fresh = self._fresh and self._executor.reconciles, False
        stops = await self._store.attempts.take_stops(
            self._lead.term, self._clock.now(), again=again
        )
        # The database lists a stop again after a minute, unless the attempt has ended.
        await self._stops.each(stops, self._stop, job_id=lambda stop: stop.job_id)
        moved = await self._store.attempts.list_moved_ends(self._lead.term)
        done = await self._ends.each(
            moved, lambda end: self._executor.set_end(*end), job_id=lambda end: end[0]
        )
        if done:
            await self._store.attempts.record_ends(self._lead.term, done)
            self.note_starts()

    async def _stop(self, stop: Stop) -> None:
        log.info(
            "reconcile.stop",
            extra={"job_id": stop.job_id, "attempt": stop.attempt, "intent": stop.intent},
        )
        await self._executor.stop(
            stop.job_id,
            stop.attempt,
            signal=signal.SIGTERM,
            grace_s=self._grace.total_seconds() if stop.grace_s is None else stop.grace_s,
        )

    async def signal_once(self) -> None:
        """Send the signals that are due before a time limit, unless the executor does so itself."""
        if self._executor.keeps_time:
            return
        due = await self._store.attempts.take_signals(self._lead.term, self._clock.now())
        await asyncio.gather(*(self._signal(*one) for one in due))

    async def _signal(self, job_id: int, attempt: int, number: int, batch_only: bool) -> None:
        try:
            await self._executor.signal(job_id, attempt, signal=number, batch_only=batch_only)
        except OdcError as error:
            log.warning("reconcile.not_signalled", extra={"job_id": job_id, "why": error.message})
        except Exception as error:
            if not is_at_fault(error):
                raise
            self._signals.report(job_id, error, job_id=job_id)

    async def _sweep(self) -> None:
        while True:
            self._begun.clear()
            begun_s = self._clock.monotonic()
            try:
                wait_s = await self._sweep_once()
            except DatabaseBusy as error:
                log.warning("reconcile.busy", extra={"why": error.message})
                wait_s = BUSY_RETRY_S
            # Passes and ends of jobs wait while a sweep runs, and sweeps may follow one another.
            await self._rest(max(wait_s, self._clock.monotonic() - begun_s))

    async def _sweep_once(self) -> float:
        """Run one sweep and send the signals that are due; return the seconds until the next
        sweep."""
        now = self._clock.now()
        due = await self._sweeps.sweep_once(now)
        self._on_change()
        self._wake.set()
        await self.signal_once()
        every_s = self._every.total_seconds()
        if due is None:
            return every_s
        return min(every_s, max(MIN_GAP_S, (due - now).total_seconds()))

    async def _rest(self, wait_s: float) -> None:
        """Sleep until the next sweep. If this daemon enforces time limits, job starts end the sleep
        early."""
        if self._executor.keeps_time:
            await self._clock.sleep(wait_s)
            return
        gap_s = min(wait_s, MIN_SWEEP_GAP_S)
        await self._clock.sleep(gap_s)
        try:
            async with asyncio.timeout(wait_s - gap_s):
                await self._begun.wait()
        except TimeoutError:
            return
