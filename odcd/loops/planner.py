"""Call odc.plan_pass at the right moments and carry its plan out. Runs on the leader only."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from odcd.clock import Clock
from odcd.errors import DatabaseBusy, PlanStale
from odcd.executor.base import Executor
from odcd.isolation import IsolationWatch, is_at_fault, keep
from odcd.loops.culprits import Culprits
from odcd.loops.lead import Lead, Pass
from odcd.loops.starts import MAX_SENT, FailStart, Starts
from odcd.stores.dispatches import DispatchStore

log = logging.getLogger(__name__)

MIN_GAP_S = 0.005
"""The minimum between passes, so that a burst of submits triggers few of them."""
REST_SHARE = 2
"""The rest after a pass that started nothing, as a multiple of its duration."""
STARTED_REST_SHARE = 0.5
"""The same after a pass that started jobs. It is shorter: while jobs start, other jobs end, and
their GPUs are idle until the next pass."""
MAX_GAP_S = 0.05
"""The maximum gap between passes that start nothing, for example while jobs are submitted to a full
cluster."""
BUSY_RETRY_S = 1.0
RESEND_AFTER = timedelta(seconds=5)
"""How long to wait for a started report before sending a job again; also the time between two
checks."""


class Planner:
    def __init__(
        self,
        lead: Lead,
        dispatches: DispatchStore,
        executor: Executor,
        clock: Clock,
        every: timedelta,
        on_pass: Callable[[Pass], None] = lambda _: None,
        fail_start: FailStart | None = None,
        watch: IsolationWatch | None = None,
    ) -> None:
        """on_pass: called after every pass, before its dispatches are sent. fail_start: see
        Starts."""
        self._lead = lead
        self._dispatches = dispatches
        self._clock = clock
        self._every = every
        self._on_pass = on_pass
        self._wake = asyncio.Event()
        self._watch = watch
        self._starts = Starts(lead.term, dispatches, executor, clock, fail_start, watch)
        self._culprits = Culprits(lead, clock, watch)
        self._unsent: list[int] = []
        self._to_send = asyncio.Event()
        self._again_at: dict[int, float] = {}
        """For each job that was sent again and has not started: when it may be sent once more."""

    def wake(self) -> None:
        """Called when something changed that a pass should see."""
        self._wake.set()

    async def run(self) -> None:
        """Plan, and resend jobs that were not reported as started. Raises LeadershipLost or
        DatabaseDown."""
        # Sends are separate from the passes: a slow dispatch does not delay the next pass. Resends
        # have their own timer, not the timeout in _plan: sweeps wake the planner before that ends.
        loops = {"plan": self._plan, "send": self._send_started, "resend": self._resend}
        async with asyncio.TaskGroup() as group:
            for name, loop in loops.items():
                group.create_task(keep(name, loop, self._clock, self._watch), name=name)

    async def _plan(self) -> None:
        """Run a pass at every wake (debounced), when time alone lets a job start, and at least
        every `every`."""
        in_vain = 0
        while True:
            self._wake.clear()
            done = await self._pass()
            if done.started:
                self._unsent += done.started
                self._to_send.set()
            share = STARTED_REST_SHARE if done.started else REST_SHARE
            gap_s = max(share * done.took_ms / 1000, min(MIN_GAP_S * 2**in_vain, MAX_GAP_S))
            if done.more:
                self._wake.set()
            await self._clock.sleep(gap_s)
            called_again = self._wake.is_set() and not done.started
            in_vain = min(in_vain + 1, 10) if called_again else 0
            try:
                async with asyncio.timeout(self._patience_s(done.next_at)):
                    await self._wake.wait()
            except TimeoutError:
                continue

    def _patience_s(self, next_at: datetime | None) -> float:
        every_s = self._every.total_seconds()
        if next_at is None:
            return every_s
        return min(every_s, max(0.0, (next_at - self._clock.now()).total_seconds()))

    async def plan_once(self) -> Pass:
        """Run one pass at the clock's time and send its dispatches to the executor.

        Dispatches that the executor could not accept stay CONFIGURING in the database and are sent
        again.
        """
        done = await self._pass()
        if done.started:
            await self.send(done.started)
        return done

    async def _send_started(self) -> None:
        while True:
            await self._to_send.wait()
            self._to_send.clear()
            job_ids, self._unsent = self._unsent[:MAX_SENT], self._unsent[MAX_SENT:]
            if self._unsent:
                self._to_send.set()
            try:
                await self.send(job_ids)
            except DatabaseBusy as error:
                log.warning("plan.unsent", extra={"why": error.message, "jobs": len(job_ids)})
                self._unsent += job_ids
                self._to_send.set()
                await self._clock.sleep(BUSY_RETRY_S)

    async def _pass(self) -> Pass:
        """Run one pass. If the database does not let it finish, drop it; the next pass makes a new
        plan."""
        begun = self._clock.monotonic()
        try:
            done = await self._lead.plan_pass(self._clock.now())
        except (PlanStale, DatabaseBusy) as error:
            log.warning("plan.stale", extra={"why": error.message, "took_ms": self._ms(begun)})
            if isinstance(error, DatabaseBusy) and error.too_slow and self._lead.starts_one:
                await self._culprits.note_failure(error)
            return self._nothing(begun)
        except Exception as error:
            if not is_at_fault(error):
                raise
            await self._culprits.note_failure(error)
            return self._nothing(begun)
        self._culprits.note_success()
        self._on_pass(done)
        if done.started:
            log.info(
                "plan.done",
                extra={
                    "started": len(done.started),
                    "looked": done.looked,
                    "took_ms": round(done.took_ms, 1),
                },
            )
        return done

    def _ms(self, begun: float) -> float:
        return round((self._clock.monotonic() - begun) * 1000, 1)

    def _nothing(self, begun: float) -> Pass:
        """The result of a pass that failed. It took as long as a pass, so the next pass waits as
        long as after one."""
        self._wake.set()
        return Pass(
            started=(), looked=0, more=False, next_at=None, decide_ms=0, took_ms=self._ms(begun)
        )

    async def send(self, job_ids: Iterable[int]) -> bool:
        """Send the running attempts of these jobs to the executor; repeating this is harmless.
        Return whether the executor accepted them."""
        return await self._starts.send(job_ids)

    async def send_unstarted(self) -> None:
        """Send all jobs of which a member was not reported as started."""
        if job_ids := await self._dispatches.list_unstarted(self._lead.term, None):
            await self.send(job_ids)

    async def _resend(self) -> None:
        while True:
            await self._clock.sleep(RESEND_AFTER.total_seconds())
            try:
                await self.resend_once()
            except DatabaseBusy as error:
                log.warning("plan.unsent", extra={"why": error.message})

    async def resend_once(self) -> None:
        """Resend jobs that were not reported as started: the report or the dispatch may be lost.
        Jobs accepted again are not sent for another `every`, because they may be pulling their
        image."""
        late = await self._dispatches.list_unstarted(
            self._lead.term, self._clock.now() - RESEND_AFTER
        )
        now = self._clock.monotonic()
        self._again_at = {job_id: self._again_at.get(job_id, now) for job_id in late}
        due = [job_id for job_id, again_at in self._again_at.items() if again_at <= now]
        if due:
            log.warning("plan.resend", extra={"jobs": len(due)})
            if await self.send(due):
                self._again_at |= dict.fromkeys(due, now + self._every.total_seconds())
