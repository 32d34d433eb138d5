"""A clock that stands still until it is moved."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta


class VirtualClock:
    def __init__(self, start: datetime) -> None:
        self._start = start
        self._now = start

    def now(self) -> datetime:
        return self._now

    def monotonic(self) -> float:
        return (self._now - self._start).total_seconds()

    async def sleep(self, seconds: float) -> None:
        """A test that steps this clock runs the loops itself; nothing may wait on this clock for
        long."""
        await asyncio.sleep(0)

    def move_to(self, moment: datetime) -> None:
        assert moment >= self._now, "time does not go back"
        self._now = moment

    def move(self, seconds: float) -> None:
        self.move_to(self._now + timedelta(seconds=seconds))
