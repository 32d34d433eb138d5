"""End the jobs that must end, and record the jobs that ended. Runs on the leader only."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Callable, Sequence
from datetime import timedelta

from odcd.clock import Clock
from odcd.errors import DatabaseBusy, OdcError, RunnerDown
from odcd.executor.base import Executor
from odcd.loops.lead import Lead
from odcd.records.dispatch import ENDS, Fact
from odcd.stores.leader import MAX_DUE
from odcd.stores.store import Store

log = logging.getLogger(__name__)

MIN_GAP_S = 0.05
"""The minimum between two checks for jobs to end: each check is a transaction, and every submit
triggers one."""
MAX_GATHER_S = 0.05
"""The maximum time for which facts are collected before they are written together."""
MIN_SWEEP_GAP_S = 0.5
"""The minimum between two sweeps that are triggered by job starts."""
BUSY_RETRY_S = 1.0
MAX_FACTS = 250
"""Facts per transaction: a pass can fill the freed GPUs while the next facts are written."""
JUDGE_S = 5.0
"""The minimum between two checks for nodes on which jobs keep failing: each reads all failures of
an hour."""


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
    ) -> None:
        """quarantine: whether nodes on which jobs keep failing are quarantined; canaries: whether
        these can be tested. stale_after: dev servers that have waited this long are cancelled."""
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
        self._most_due = MAX_DUE
        self._on_change = on_change
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
        async with asyncio.TaskGroup() as group:
            # No task ends when the database is busy: that would end the others and lose what they
            # have in memory.
            group.create_task(self._record(), name="record-facts")
            group.create_task(self._carry_out(), name="carry-out")
            group.create_task(self._sweep(), name="sweep")

    async def _record(self) -> None:
        async for facts in self._executor.observe():
            begun = self._clock.monotonic()
            await self._write(facts)
            await self._executor.acknowledge(facts)
            # If one member of a gang failed, the others must be stopped.
            self._wake.set()
            # A transaction costs the same for one fact and for many: under load, collect several.
            took_s = self._clock.monotonic() - begun
            if took_s > 0:
                await self._clock.sleep(min(took_s, MAX_GATHER_S))

    async def _write(self, facts: Sequence[Fact]) -> None:
        """Write the executor's facts, and retry while the database is busy: each fact arrives only
        once. Each failure halves the batch, which may be too large for the statement timeout."""
        batch, facts = MAX_FACTS, _ends_first(facts)
        while facts:
            some, now = facts[:batch], self._clock.now()
            try:
                ended = await self._store.attempts.record_facts(self._lead.term, some, now)
            except DatabaseBusy as error:
                log.warning("reconcile.busy", extra={"facts": len(some), "why": error.message})
                batch = max(1, batch // 2)
                await self._clock.sleep(BUSY_RETRY_S)
                continue
            facts = facts[len(some) :]
            if ended:
                log.info("reconcile.ended", extra={"jobs": len(ended)})
                self._on_change()

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
        for stop in await self._store.attempts.take_stops(
            self._lead.term, self._clock.now(), again=again
        ):
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
        moved = await self._store.attempts.list_moved_ends(self._lead.term)
        for job_id, attempt, ends_at in moved:
            await self._executor.set_end(job_id, attempt, ends_at)
        if moved:
            await self._store.attempts.record_ends(self._lead.term, moved)
            self.note_starts()

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

    async def _sweep(self) -> None:
        while True:
            self._begun.clear()
            begun_s = self._clock.monotonic()
            try:
                wait_s = await self._sweep_once()
            except DatabaseBusy as error:
                log.warning("reconcile.busy", extra={"why": error.message})
                wait_s = BUSY_RETRY_S
                # The jobs that are due may be too many for the statement timeout.
                self._most_due = max(1, self._most_due // 2)
            # Passes and ends of jobs wait while a sweep runs, and sweeps may follow one another.
            await self._rest(max(wait_s, self._clock.monotonic() - begun_s))

    async def _sweep_once(self) -> float:
        """Run one sweep and send the signals that are due; return the seconds until the next
        sweep."""
        now = self._clock.now()
        due = await self._store.leader.sweep(
            self._lead.term, now,
            keeps_time=self._executor.keeps_time, node_grace=self._node_grace,
            quarantine=self._judges(), canaries=self._canaries, stale_after=self._stale_after,
            most=self._most_due,
        )  # fmt: skip
        self._most_due = min(MAX_DUE, 2 * self._most_due)
        self._on_change()
        self._wake.set()
        await self.signal_once()
        every_s = self._every.total_seconds()
        if due is None:
            return every_s
        return min(every_s, max(MIN_GAP_S, (due - now).total_seconds()))

    def _judges(self) -> bool | None:
        """Whether nodes are quarantined in this sweep; None: too soon after the last check."""
        at = self._clock.monotonic()
        if self._judged_at is not None and at - self._judged_at < JUDGE_S:
            return None
        self._judged_at = at
        return self._quarantine

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


def _ends_first(facts: Sequence[Fact]) -> Sequence[Fact]:
    """Facts about members that ended come first, because other jobs wait for their GPUs; otherwise
    they would wait for the starts of a large pass. The facts of one attempt stay in order."""
    if len(facts) <= MAX_FACTS:
        return facts
    over = {(fact.job_id, fact.attempt) for fact in facts if fact.kind in ENDS}
    return sorted(facts, key=lambda fact: (fact.job_id, fact.attempt) not in over)
