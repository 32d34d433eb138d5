"""Find the pending job because of which passes fail, and hold it. Runs on the leader only.

A pass plans all pending jobs in one transaction, so one job that it cannot plan would stop the
starts of all. After several failures in a row, passes are tried on the older part of the queue and
rolled back, until the first job is found with which a pass fails.
"""

from __future__ import annotations

import logging
from collections import deque

from odcd.clock import Clock
from odcd.errors import DatabaseBusy
from odcd.isolation import NOBODY, IsolationWatch, explain
from odcd.loops.lead import Lead

log = logging.getLogger(__name__)

FAILURES = 3
"""Passes that fail in a row before the search: an error may also pass by itself."""
MAX_HOLDS = 10
"""Searches per hour that hold jobs. If more jobs fail, a defect is at fault and not the jobs."""
HOLDS_S = 3600.0
PAUSE_S = (0.5, 60.0)
"""After a failed pass; each pause is twice the last."""


class Culprits:
    def __init__(self, lead: Lead, clock: Clock, watch: IsolationWatch | None = None) -> None:
        self._lead = lead
        self._clock = clock
        self._watch = watch or NOBODY
        self._failures = 0
        self._pause_s = PAUSE_S[0]
        self._held_at: deque[float] = deque(maxlen=MAX_HOLDS)

    def note_success(self) -> None:
        self._failures = 0
        self._pause_s = PAUSE_S[0]

    async def note_failure(self, error: Exception) -> None:
        """A pass failed. Hold the job at fault after some failures; otherwise pause. Raises
        LeadershipLost, DatabaseDown or DatabaseBusy."""
        self._failures += 1
        log.warning(
            "plan.failed", extra={"why": explain(error), "failures": self._failures},
            exc_info=error if self._failures == 1 else None,
        )  # fmt: skip
        if self._failures >= FAILURES and self._may_hold():
            found = await self._find()
            if found is not None:
                await self._hold(*found)
                # If the next pass fails too, there is another such job: look for it at once.
                self._failures = FAILURES - 1
                self._pause_s = PAUSE_S[0]
                return
        if self._failures >= FAILURES:
            self._watch.isolated("passes")
            log.error("plan.fails", extra={"why": explain(error), "failures": self._failures})
        await self._clock.sleep(self._pause_s)
        self._pause_s = min(2 * self._pause_s, PAUSE_S[1])

    def _may_hold(self) -> bool:
        held = self._held_at
        return len(held) < MAX_HOLDS or self._clock.monotonic() - held[0] > HOLDS_S

    async def _hold(self, job_id: int, why: str) -> None:
        held = await self._lead.hold_culprit(job_id, why, self._clock.now())
        self._held_at.append(self._clock.monotonic())
        self._watch.isolated("passes")
        log.error("plan.job_held", extra={"job_id": job_id, "why": why, "jobs": len(held)})

    async def _find(self) -> tuple[int, str] | None:
        """The first job with which a pass over it and all older jobs fails, and how. None: passes
        succeed again, or fail without any pending job."""
        bounds = await self._lead.pending_ids()
        if bounds is None:
            return None
        low, high = bounds[0] - 1, bounds[1]
        why = await self._try(high)
        if why is None or await self._try(low) is not None:
            return None
        while high - low > 1:
            middle = (low + high) // 2
            failure = await self._try(middle)
            if failure is None:
                low = middle
            else:
                high, why = middle, failure
        # Other jobs ended and began meanwhile: only hold what fails again.
        return (high, why) if await self._try(high) is not None else None

    async def _try(self, newest_id: int) -> str | None:
        """Why a pass over jobs up to this one fails; None: it succeeds."""
        try:
            return await self._lead.try_pass(self._clock.now(), newest_id)
        except DatabaseBusy as error:
            if not error.too_slow:
                raise
            return error.message
