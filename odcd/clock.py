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


TURN_S = 0.01


class Turns:
    """Lets long work on the event loop yield: it calls take() between its parts when are_due()."""

    def __init__(self, every_s: float = TURN_S) -> None:
        self._every_s = every_s
        self._until = time.monotonic() + every_s

    def are_due(self) -> bool:
        return time.monotonic() >= self._until

    async def take(self) -> None:
        """Let other tasks run first."""
        await asyncio.sleep(0)
        self._until = time.monotonic() + self._every_s


class SharedTurns(Turns):
    """Turns of tasks that become ready together: all of them have one turn, not one each."""

    def __init__(self, every_s: float = TURN_S) -> None:
        super().__init__(every_s)
        self._ending = False

    async def take(self) -> None:
        while self.are_due():
            if not self._ending:
                self._ending = True
                asyncio.get_running_loop().call_soon(self._begin)
            await asyncio.sleep(0)

    def _begin(self) -> None:
        self._ending = False
        self._until = time.monotonic() + self._every_s


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))
