"""Record the ends of steps that no client records, and what a leader before this one left open.
Runs on the leader only."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from odcd.clock import Clock
from odcd.errors import DatabaseBusy, OdcError, RunnerDown, Unavailable
from odcd.executor.base import Executor
from odcd.records.step import StepEnd, StepKey
from odcd.stores.steps import StepStore

log = logging.getLogger(__name__)

LOOK_S = 2.0
START_S = 30.0
"""A step that the executor does not know after this time was never started, or is lost."""
LOST = {"e": "lost", "detail": "the step was not started, or its record was lost"}


class StepRecorder:
    def __init__(
        self, term: int, store: StepStore, executor: Executor, clock: Clock,
        on_end: Callable[[int], None],
    ) -> None:  # fmt: skip
        """on_end: called with a job that has a step less."""
        self._term = term
        self._store = store
        self._executor = executor
        self._clock = clock
        self._on_end = on_end

    async def run(self) -> None:
        """Raises LeadershipLost or DatabaseDown."""
        while True:
            try:
                await self.look_once()
            except (DatabaseBusy, RunnerDown) as error:
                log.warning("steps.busy", extra={"why": error.message})
            await self._clock.sleep(LOOK_S)

    async def look_once(self) -> int:
        """Record the ends that are not recorded yet; return their number."""
        steps = self._executor.steps
        if steps is None:
            return 0
        rows = await self._store.list(live=True)
        started: dict[StepKey, datetime] = {
            (row["job_id"], row["attempt"], row["step"]): row["started_at"] for row in rows
        }
        try:
            known = await steps.list(list(started))
        except Unavailable:
            raise
        except OdcError as error:
            # A runner of an earlier release knows no steps.
            log.debug("steps.not_listed", extra={"why": error.message})
            known = {}
        late = self._clock.now() - timedelta(seconds=START_S)
        lost = [key for key, at in started.items() if key not in known and at < late]
        ends = [StepEnd.of(key, end) for key, end in known.items() if end is not None]
        ends += [StepEnd.of(key, LOST) for key in lost]
        if ends:
            await self._store.end(self._term, ends, self._clock.now())
        for end in ends:
            self._on_end(end.job_id)
            try:
                await steps.acknowledge((end.job_id, end.attempt, end.step), forget=False)
            except OdcError as error:
                log.warning("steps.not_acknowledged", extra={"why": error.message})
        return len(ends)
