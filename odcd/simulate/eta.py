"""Predicted starts of jobs that did not start when they were submitted, as users are told them.

A prediction sees the database as it was after the pass of the submit, on a connection of its own,
so that the replay goes on meanwhile: what comes meanwhile it does not see, and what it writes the
scheduler does not read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from odcd.database.pool import Session


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """When a job is expected to start: sooner with 10, 50 and 90 % likelihood."""

    p10: datetime
    p50: datetime
    p90: datetime


class Forecaster:
    """One prediction at a time, each on what those before it have learnt."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._running: asyncio.Task[None] | None = None
        self.told: dict[int, Interval] = {}
        """By job id; of a job without a start in sight nothing is told."""

    async def ask(self, job_ids: Sequence[int], now: datetime) -> None:
        """Begin to predict; what is in the database now counts, whatever comes meanwhile."""
        await self.settle()
        await self._session.execute("begin isolation level repeatable read; select 1")
        # Not in a TaskGroup: its error belongs to whoever settles.
        self._running = asyncio.create_task(self._predict(job_ids, now), name="predict-starts")

    async def settle(self) -> None:
        """Wait for the prediction under way."""
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
                self.told[row["job_id"]] = Interval(p10=row["p10"], p50=row["p50"], p90=row["p90"])
