"""Refresh the expected starts of pending jobs, outside the scheduling pass. Runs on the leader
only.

It uses its own connection. A forecast is only advice: if anything fails here, scheduling continues.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta

from odcd.clock import Clock
from odcd.database.connections import FORECASTER
from odcd.database.pool import Database
from odcd.database.session import Session
from odcd.errors import LeadershipLost, OdcError

log = logging.getLogger(__name__)

APPLICATION = FORECASTER.name
MIN_GAP_S = 2.0
"""The minimum between two refreshes while things change. The first change after a pause is handled
at once."""
IDLE_SHARE = 20
"""After each refresh it rests for this many times the refresh's duration: at most 5 % of a core."""
RETRY_S = 30.0
TIDY_EVERY_S = 3600.0


class Forecaster:
    def __init__(
        self,
        term: int,
        database: Database,
        clock: Clock,
        every: timedelta,
        on_refresh: Callable[[float], None] = lambda _: None,
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
            took_s = await self.refresh_once(session)
            await self._clock.sleep(max(MIN_GAP_S, IDLE_SHARE * took_s))
            try:
                async with asyncio.timeout(self._every.total_seconds()):
                    await self._wake.wait()
            except TimeoutError:
                await self._tidy(session)

    async def refresh_once(self, session: Session) -> float:
        """Refresh once and return how many seconds it took. Raises LeadershipLost or
        DatabaseDown."""
        begun = self._clock.monotonic()
        row = await session.fetchrow(
            "select foreseen, kept, scored from odc.refresh_eta(p_term => $1, p_now => $2)",
            self._term, self._clock.now(),
        )  # fmt: skip
        assert row is not None
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
