"""End what is to end, and write down what ended. Runs on the leader only."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Sequence
from datetime import timedelta

from odcd.clock import Clock
from odcd.errors import DatabaseBusy, OdcError, RunnerDown
from odcd.executor.base import Executor
from odcd.loops.election import Lead
from odcd.records.dispatch import Fact
from odcd.stores.store import Store

log = logging.getLogger(__name__)

MIN_GAP_S = 0.05
"""Between two looks for what is to end: each is a transaction, and every submit calls for one."""
MAX_GATHER_S = 0.05
"""The longest that facts are let gather before they are written together."""
MIN_SWEEP_GAP_S = 0.5
"""Between two sweeps that starts call for."""
BUSY_RETRY_S = 1.0
MAX_FACTS = 250
"""In one transaction: a pass fills the GPUs of these while the next are written."""
JUDGE_S = 5.0
"""Between two judgements on nodes that may eat jobs: all failures of an hour are looked at."""


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
        node_grace: timedelta | None,
        every: timedelta,
        on_change: Callable[[], None],
        quarantine: bool = False,
        canaries: bool = True,
        stale_after: timedelta | None = None,
    ) -> None:
        """quarantine: nodes that eat jobs are; canaries: they can be tried. stale_after: dev
        servers that have waited so long are cancelled."""
        self._lead = lead
        self._store = store
        self._executor = executor
        self._clock = clock
        self._grace = grace
        self._node_grace = node_grace
        self._every = every
        self._quarantine = quarantine
        self._canaries = canaries
        self._stale_after = stale_after
        self._judged_at: float | None = None
        self._on_change = on_change
        self._fresh = True
        self._wake = asyncio.Event()
        self._begun = asyncio.Event()

    def wake(self) -> None:
        self._wake.set()

    def note_starts(self) -> None:
        """Jobs have started: one of them may end sooner than what is waited for."""
        if not self._executor.keeps_time:
            self._begun.set()

    async def run(self) -> None:
        """Raises LeadershipLost or DatabaseDown."""
        async with asyncio.TaskGroup() as group:
            # None ends on a busy database: that would end the others with what they hold.
            group.create_task(self._record(), name="record-facts")
            group.create_task(self._carry_out(), name="carry-out")
            group.create_task(self._sweep(), name="sweep")

    async def _record(self) -> None:
        async for facts in self._executor.observe():
            begun = self._clock.monotonic()
            await self._write(facts)
            await self._executor.acknowledge(facts)
            # One member of a gang that failed leaves others to be stopped.
            self._wake.set()
            # A transaction costs the same for one fact and for many: when they come thick, let
            # some gather.
            took_s = self._clock.monotonic() - begun
            if took_s > 0:
                await self._clock.sleep(min(took_s, MAX_GATHER_S))

    async def _write(self, facts: Sequence[Fact]) -> None:
        """Write the executor's facts, retrying while the database is busy: each comes once. Fewer
        at a time after each failure, for a batch may be too large for the limit of a statement."""
        batch = MAX_FACTS
        while facts:
            some, now = facts[:batch], self._clock.now()
            try:
                ended = await self._store.record_facts(self._lead.term, some, now)
            except DatabaseBusy as error:
                log.warning("reap.busy", extra={"facts": len(some), "why": error.message})
                batch = max(1, batch // 2)
                await self._clock.sleep(BUSY_RETRY_S)
                continue
            facts = facts[len(some) :]
            if ended:
                log.info("reap.ended", extra={"jobs": len(ended)})
                self._on_change()

    async def _carry_out(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self.carry_out_once()
            except RunnerDown as error:
                log.error("reap.runner_down", extra={"why": error.message})
            except DatabaseBusy as error:
                log.warning("reap.busy", extra={"why": error.message})
                self._wake.set()
                await self._clock.sleep(BUSY_RETRY_S)
            await self._clock.sleep(MIN_GAP_S)
            try:
                async with asyncio.timeout(self._every.total_seconds()):
                    await self._wake.wait()
            except TimeoutError:
                continue

    async def carry_out_once(self) -> None:
        """Tell the executor which attempts are to end, and which time limits moved."""
        again, self._fresh = self._fresh and self._executor.reconciles, False
        for stop in await self._store.stops(self._lead.term, self._clock.now(), again=again):
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
        moved = await self._store.moved_ends(self._lead.term)
        for job_id, attempt, ends_at in moved:
            await self._executor.set_end(job_id, attempt, ends_at)
        if moved:
            await self._store.ends_told(self._lead.term, moved)
            self.note_starts()

    async def signal_once(self) -> None:
        """Send the signals before time limits that are due, of executors that do not."""
        if self._executor.keeps_time:
            return
        due = await self._store.signals(self._lead.term, self._clock.now())
        await asyncio.gather(*(self._signal(*one) for one in due))

    async def _signal(self, job_id: int, attempt: int, number: int, batch_only: bool) -> None:
        try:
            await self._executor.signal(job_id, attempt, signal=number, batch_only=batch_only)
        except OdcError as error:
            log.warning("reap.unsignalled", extra={"job_id": job_id, "why": error.message})

    async def _sweep(self) -> None:
        while True:
            self._begun.clear()
            try:
                wait_s = await self._sweep_once()
            except DatabaseBusy as error:
                log.warning("reap.busy", extra={"why": error.message})
                wait_s = BUSY_RETRY_S
            await self._rest(wait_s)

    async def _sweep_once(self) -> float:
        """One sweep, and the signals that are due; in how many seconds the next one is."""
        now = self._clock.now()
        due = await self._store.sweep(
            self._lead.term, now,
            keeps_time=self._executor.keeps_time, node_grace=self._node_grace,
            quarantine=self._judges(), canaries=self._canaries, stale_after=self._stale_after,
        )  # fmt: skip
        self._on_change()
        self._wake.set()
        await self.signal_once()
        every_s = self._every.total_seconds()
        if due is None:
            return every_s
        return min(every_s, max(MIN_GAP_S, (due - now).total_seconds()))

    def _judges(self) -> bool | None:
        """Whether nodes are quarantined; None: not again so soon."""
        at = self._clock.monotonic()
        if self._judged_at is not None and at - self._judged_at < JUDGE_S:
            return None
        self._judged_at = at
        return self._quarantine

    async def _rest(self, wait_s: float) -> None:
        """Starts cut it short, where the time of what has started is kept here."""
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
