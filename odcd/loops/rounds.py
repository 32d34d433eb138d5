"""The base of the leader's loops over dev servers and nodes: rounds of work at intervals."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Awaitable
from datetime import timedelta
from typing import ClassVar, Protocol, TypeVar

from odcd.clock import Clock
from odcd.errors import OdcError
from odcd.isolation import IsolationWatch

log = logging.getLogger(__name__)

MIN_REST_S = 1.0

T = TypeVar("T")


class RoundMetrics(IsolationWatch, Protocol):
    def round_took(self, loop: str, seconds: float) -> None: ...

    def round_failed(self, loop: str) -> None:
        """A job could not be reached."""
        ...


class Rounds(ABC):
    """A subclass sets `name` and implements run_once(), which does one round.

    One job that cannot be reached must not end the loop: a subclass calls the executor through
    reach() and handles its errors. It processes each job through an Isolation, so that a job that
    cannot be processed stops no other.
    """

    name: ClassVar[str]
    """In metrics and in the log."""

    def __init__(self, clock: Clock, every: timedelta, metrics: RoundMetrics | None = None) -> None:
        """every: the maximum time from the start of a round to the next one."""
        self._clock = clock
        self._every = every
        self._metrics = metrics
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Called on a change: the next round starts as soon as this one has ended."""
        self._woken.set()

    async def run(self) -> None:
        """Raises LeadershipLost or DatabaseDown."""
        while True:
            self._woken.clear()
            began_s = self._clock.monotonic()
            wait_s = await self.run_once()
            took_s = self._clock.monotonic() - began_s
            if self._metrics is not None:
                self._metrics.round_took(self.name, took_s)
            if wait_s is None:
                wait_s = max(MIN_REST_S, self._every.total_seconds() - took_s)
            try:
                async with asyncio.timeout(wait_s):
                    await self._woken.wait()
            except TimeoutError:
                continue

    @abstractmethod
    async def run_once(self) -> float | None:
        """Do what is due. Return the seconds until the next round; None: `every` after the start of
        this one."""

    async def reach(self, job_id: int, call: Awaitable[T]) -> T:
        """Await a call of the executor that reaches a job. A failure is logged and counted.

        Raises RunnerDown if a retry may help, else another OdcError.
        """
        try:
            return await call
        except OdcError as error:
            if self._metrics is not None:
                self._metrics.round_failed(self.name)
            log.warning(
                "loop.failed",
                extra={"loop": self.name, "job_id": job_id, "why": error.message},
            )
            raise
