"""Predicted starts of jobs that did not start at submit, as shown to users.

A prediction sees the database as of the end of the pass after the submit. It uses its own
connection, so the replay continues meanwhile: it does not see later changes, and the scheduler does
not read its results.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from odcd.database.session import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """The expected start of a job: it starts earlier with a probability of 10, 50 and 90 %."""

    p10: datetime
    p50: datetime
    p90: datetime


class Forecaster:
    """Runs one prediction at a time; each uses the results of the previous ones."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._running: asyncio.Task[None] | None = None
        self.predictions: dict[int, Interval] = {}
        """By job id; jobs without a predicted start are missing."""

    async def ask(self, job_ids: Sequence[int], now: datetime) -> None:
        """Start a prediction for the current state of the database, unaffected by later changes."""
        await self.settle()
        await self._session.execute("begin isolation level repeatable read; select 1")
        # Not in a TaskGroup: settle() raises its error.
        self._running = asyncio.create_task(self._predict(job_ids, now), name="predict-starts")

    async def settle(self) -> None:
        """Wait for the prediction in progress."""
        if self._running is not None:
            running, self._running = self._running, None
            await running

    def cancel(self) -> None:
        if self._running is not None:
            self._running.cancel()

    async def _predict(self, job_ids: Sequence[int], now: datetime) -> None:
        rows = await self._session.fetch(
            "select job_id, p10, p50, p90 "
            "from odc.predict_jobs(p_job_ids => $1::bigint[], p_now => $2)",
            list(job_ids),
            now,
        )
        await self._session.execute("commit")
        for row in rows:
            if row["p50"] is not None:
                self.predictions[row["job_id"]] = Interval(
                    p10=row["p10"], p50=row["p50"], p90=row["p90"]
                )
