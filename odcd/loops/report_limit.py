"""End long statements of logins that read reports, such as Grafana's. Runs on the leader only."""

from __future__ import annotations

import logging
from datetime import timedelta

from odcd.clock import Clock
from odcd.stores.leader import LeaderStore

log = logging.getLogger(__name__)

LIMIT = timedelta(seconds=60)
EVERY_S = 15.0


class ReportLimit:
    def __init__(self, store: LeaderStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def run(self) -> None:
        """Raises DatabaseDown or DatabaseBusy."""
        while True:
            ended = await self._store.end_long_reports(self._clock.now(), LIMIT)
            if ended:
                log.warning("reports.ended", extra={"statements": ended})
            await self._clock.sleep(EVERY_S)
