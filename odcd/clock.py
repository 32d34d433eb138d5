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

    def __init__(self, every_s: float = TURN_S, *, rest_s: float = 0.0) -> None:
        """rest_s: the time for other tasks between two turns."""
        super().__init__(every_s)
        self._rest_s = rest_s
        self._ending = False
        self._news = asyncio.Event()

    async def take(self) -> None:
        had_turn = True
        while self.are_due():
            if not self._ending:
                self._ending = True
                self._news = asyncio.Event()
                asyncio.get_running_loop().call_later(self._rest_s, self._begin)
            if had_turn:
                # Those who wait already come first.
                await asyncio.sleep(0)
                had_turn = False
            else:
                await self._news.wait()

    def _begin(self) -> None:
        self._ending = False
        self._until = time.monotonic() + self._every_s
        self._news.set()


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(0.0, seconds))
