"""Run sweeps, the work that depends on time alone. Runs on the leader only.

A sweep is one transaction. If it fails, it is repeated with each step apart, and the step or the
job at fault is set aside: later sweeps leave it out until it is tried again.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from odcd.clock import Clock
from odcd.errors import DatabaseBusy, OdcError
from odcd.isolation import Isolation, IsolationWatch, is_at_fault
from odcd.stores.leader import MAX_DUE, LeaderStore, SweepFailure

JUDGE_S = 5.0
"""The minimum between two checks for nodes on which jobs keep failing: each reads all failures of
an hour."""


class Sweeps:
    def __init__(
        self, term: int, store: LeaderStore, clock: Clock, *, keeps_time: bool,
        node_grace: timedelta | None, quarantine: bool, canaries: bool,
        stale_after: timedelta | None, watch: IsolationWatch | None = None,
    ) -> None:  # fmt: skip
        """See LeaderStore.sweep."""
        self._term = term
        self._store = store
        self._clock = clock
        self._options: dict[str, Any] = {
            "keeps_time": keeps_time, "node_grace": node_grace, "canaries": canaries,
            "stale_after": stale_after,
        }  # fmt: skip
        self._quarantine = quarantine
        self._judged_at: float | None = None
        self._due_limit = MAX_DUE
        self._jobs = Isolation[int]("sweep", clock, watch)
        self._steps = Isolation[str]("sweep", clock, watch)

    async def sweep_once(self, now: datetime) -> datetime | None:
        """Return the latest time for the next sweep. Raises DatabaseBusy, and errors of a sweep
        that no step or job explains."""
        again = self._jobs.due(), self._steps.due()
        options: dict[str, Any] = self._options | {
            "quarantine": self._judges(), "aside": self._jobs.aside(),
            "skipped": self._steps.aside(),
        }  # fmt: skip
        try:
            due = await self._store.sweep(self._term, now, limit=self._due_limit, **options)
        except DatabaseBusy:
            # The jobs that are due may be too many for the statement timeout.
            self._due_limit = max(1, self._due_limit // 2)
            raise
        except Exception as error:
            if not is_at_fault(error):
                raise
            failures = await self._store.sweep_apart(self._term, now, **options)
            if not failures:
                raise
            for failure in failures:
                self._set_aside(failure)
            return now
        self._due_limit = min(MAX_DUE, 2 * self._due_limit)
        for job_id in again[0]:
            self._jobs.clear(job_id)
        for step in again[1]:
            self._steps.clear(step)
        return due

    def _set_aside(self, failure: SweepFailure) -> None:
        error = OdcError(f"step {failure.step} of the sweep: {failure.why} ({failure.state})")
        if failure.job_id is None:
            self._steps.put(failure.step, error)
        else:
            self._jobs.put(failure.job_id, error, job_id=failure.job_id)

    def _judges(self) -> bool | None:
        """Whether nodes are quarantined in this sweep; None: too soon after the last check."""
        at = self._clock.monotonic()
        if self._judged_at is not None and at - self._judged_at < JUDGE_S:
            return None
        self._judged_at = at
        return self._quarantine
