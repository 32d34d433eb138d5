"""The queue positions of waiting reservations."""

from __future__ import annotations

import asyncio
from datetime import datetime

from odcd.api.http.context import Api

PLACES_KEPT_S = 1.0


class Positions:
    """Queue positions, cached for a second: every waiting client polls them."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._one_at_a_time = asyncio.Lock()
        self._read_at_s = -PLACES_KEPT_S
        self._kept = "{}"

    def forget(self) -> None:
        """Drop the cache: another reservation waits."""
        self._read_at_s = -PLACES_KEPT_S

    async def read(self, now: datetime) -> str:
        async with self._one_at_a_time:
            if self._api.clock.monotonic() - self._read_at_s >= PLACES_KEPT_S:
                self._kept = await self._api.store.reservations.get_positions(now)
                self._read_at_s = self._api.clock.monotonic()
            return self._kept
