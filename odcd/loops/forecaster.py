"""Refresh the expected starts of pending jobs, outside the scheduling pass. Runs on the leader
only.

It uses its own connection. A forecast is only advice: if anything fails here, scheduling continues.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import timedelta

from odcd.clock import Clock
from odcd.database.connections import FORECASTER
from odcd.database.pool import Database
from odcd.database.session import Row, Session
from odcd.errors import LeadershipLost, OdcError
from odcd.isolation import Isolation, IsolationWatch, is_at_fault

log = logging.getLogger(__name__)

APPLICATION = FORECASTER.name
MIN_GAP_S = 2.0
"""The minimum between two refreshes while things change. The first change after a pause is handled
at once."""
IDLE_SHARE = 20
"""After each refresh it rests for this many times the refresh's duration: at most 5 % of a core."""
RETRY_S = 30.0
TIDY_EVERY_S = 3600.0
MAX_JOBS = 1000
"""Jobs of the queue whose starts are predicted."""
PARTS = (("learn",), ("lacking",), ("learn", "lacking"))
"""Parts of a refresh that can be left out, in the order in which this is tried."""


class Forecaster:
    def __init__(
        self,
        term: int,
        database: Database,
        clock: Clock,
        every: timedelta,
        on_refresh: Callable[[float], None] = lambda _: None,
        watch: IsolationWatch | None = None,
    ) -> None:
        """every: refresh this often even if nothing changed, because forecasts age. on_refresh:
        called with the seconds each refresh took."""
        self._term = term
        self._database = database
        self._clock = clock
        self._every = every
        self._on_refresh = on_refresh
        self._wake = asyncio.Event()
        self._tidied_at: float | None = None
        self._jobs = Isolation[int]("forecasts", clock, watch)
        self._parts = Isolation[str]("forecasts", clock, watch)

    def wake(self) -> None:
        """Called after a pass: jobs started, or new jobs wait."""
        self._wake.set()

    async def run(self) -> None:
        """Raises LeadershipLost."""
        while True:
            try:
                async with self._database.dedicated(kind=FORECASTER) as session:
                    await self._refresh_forever(session)
            except LeadershipLost:
                raise
            except OdcError as error:
                log.warning("forecast.stops", extra={"why": error.message})
            except Exception:
                # Expected starts go stale, but jobs must still be started.
                log.exception("forecast.failed")
            await self._clock.sleep(RETRY_S)

    async def _refresh_forever(self, session: Session) -> None:
        while True:
            self._wake.clear()
            took_s = await self.refresh_apart(session)
            await self._clock.sleep(max(MIN_GAP_S, IDLE_SHARE * took_s))
            try:
                async with asyncio.timeout(self._every.total_seconds()):
                    await self._wake.wait()
            except TimeoutError:
                await self._tidy(session)

    async def refresh_apart(self, session: Session) -> float:
        """Refresh once; set aside what makes a refresh fail, so that the next one leaves it out."""
        begun = self._clock.monotonic()
        try:
            return await self.refresh_once(session)
        except Exception as error:
            if session.closed or not is_at_fault(error):
                raise
            await self._isolate(session, error)
        return self._clock.monotonic() - begun

    async def _isolate(self, session: Session, error: Exception) -> None:
        """Set the job or the part aside because of which a refresh failed. Raises the error if
        there is none."""
        if await self._fails(session, 0):
            for parts in PARTS:
                if not await self._fails(session, 0, parts):
                    for part in parts:
                        self._parts.put(part, error)
                    return
            raise error
        # Fewer jobs of the queue, until one more makes it fail.
        low, high = 0, MAX_JOBS
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if await self._fails(session, middle) else (middle, high)
        job_id = await session.fetchval(
            "select odc.forecast_place(p_now => $1, p_place => $2)", self._clock.now(), high
        )
        if job_id is None:
            raise error
        self._jobs.put(job_id, error, job_id=job_id)

    async def _fails(self, session: Session, jobs: int, skipped: Sequence[str] = ()) -> bool:
        try:
            await self._refresh(session, jobs, skipped)
        except Exception as error:
            if session.closed or not is_at_fault(error):
                raise
            return True
        return False

    async def _refresh(
        self, session: Session, jobs: int = MAX_JOBS, skipped: Sequence[str] = ()
    ) -> Row:  # fmt: skip
        row = await session.fetchrow(
            "select foreseen, kept, scored from odc.refresh_eta(p_term => $1, p_now => $2, "
            "p_limit => $3, p_without => $4, p_skipped => $5)",
            self._term, self._clock.now(), jobs, self._jobs.aside(),
            [*skipped, *self._parts.aside()],
        )  # fmt: skip
        assert row is not None
        return row

    async def refresh_once(self, session: Session) -> float:
        """Refresh once and return how many seconds it took. Raises LeadershipLost or
        DatabaseDown."""
        begun, again = self._clock.monotonic(), (self._jobs.due(), self._parts.due())
        row = await self._refresh(session)
        for job_id in again[0]:
            self._jobs.clear(job_id)
        for part in again[1]:
            self._parts.clear(part)
        took_s = self._clock.monotonic() - begun
        self._on_refresh(took_s)
        if row["kept"] or row["scored"]:
            log.debug(
                "forecast.done",
                extra={
                    "foreseen": row["foreseen"],
                    "kept": row["kept"],
                    "scored": row["scored"],
                    "took_ms": round(took_s * 1000, 1),
                },
            )
        return took_s

    async def _tidy(self, session: Session) -> None:
        """Delete old predictions, at most once an hour, while nothing changes."""
        now_s = self._clock.monotonic()
        if self._tidied_at is not None and now_s - self._tidied_at < TIDY_EVERY_S:
            return
        self._tidied_at = now_s
        await session.fetchval(
            "select odc.tidy_predictions(p_term => $1, p_now => $2)", self._term, self._clock.now()
        )
