"""The only source of time. All else takes a Clock, so a test can live a month in a second."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    def now(self) -> datetime:
        """The moment, aware, UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back; meaningful as differences only."""
        ...

    async def sleep(self, seconds: float) -> None: ...


TURN_S = 0.01


class Turns:
    """For long work on the event loop: where they are due, it calls take() between its parts."""

    def __init__(self, every_s: float = TURN_S) -> None:
        self._every_s = every_s
        self._until = time.monotonic() + every_s

    def are_due(self) -> bool:
        return time.monotonic() >= self._until

    async def take(self) -> None:
        """Let others go first."""
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
