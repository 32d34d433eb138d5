"""The only source of time. Everything else takes a Clock, so a test can simulate a month in a
second."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """The current time, timezone-aware, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go backwards; only differences are meaningful."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class Turns:
    """Lets long work on the event loop yield: it calls take() between its parts when are_due()."""

    def __init__(self, every_s: float = 0.01) -> None:
        self._every_s = every_s
        self._until = time.monotonic() + every_s

    def are_due(self) -> bool:
        return time.monotonic() >= self._until

    async def take(self) -> None:
        """Let other tasks run first."""
        await asyncio.sleep(0)
        self._until = time.monotonic() + self._every_s


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))
