"""The clients that are attached to steps of this daemon, and what happens when one disappears."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

from odcd.clock import SharedTurns
from odcd.errors import OdcError

log = logging.getLogger(__name__)

GONE_S = 15.0
"""A client that has not come back after this time is gone: what it started is ended."""
WOKEN = 8
"""How many waiting clients may try again when a step of their job ends."""
MANY = 50
"""So many waiting clients of a job look half as often."""

Thing = tuple[Any, ...]
"""A step, or the job that a command made for itself."""


class StepSessions:
    def __init__(self) -> None:
        self._attached: Counter[Thing] = Counter()
        self._waiting: dict[int, deque[asyncio.Event]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.turns = SharedTurns()
        """Of all streams of output: a client chooses where in a journal it continues, and what is
        there may be thousands of frames that a task has printed."""

    def attach(self, thing: Thing) -> None:
        self._attached[thing] += 1

    def is_attached(self, thing: Thing) -> bool:
        return self._attached[thing] > 0

    def leave(self, thing: Thing, end: Callable[[], Awaitable[None]] | None) -> None:
        """end: called if the client does not come back; None: there is nothing to end."""
        self._attached[thing] -= 1
        if self._attached[thing] <= 0:
            del self._attached[thing]
        if end is not None:
            self._run(self._end_later(thing, end))

    async def _end_later(self, thing: Thing, end: Callable[[], Awaitable[None]]) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.Event().wait(), GONE_S)
        if self.is_attached(thing):
            return
        try:
            await end()
            log.info("step.abandoned", extra={"thing": list(thing)})
        except OdcError as error:
            log.warning("step.not_ended", extra={"thing": list(thing), "why": error.message})

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def wake(self, job_id: int) -> None:
        """A step of the job has ended: those that have waited longest for its CPUs may try again.
        Not all, because hundreds of steps may wait for one another."""
        queue = self._waiting.get(job_id) or deque[asyncio.Event]()
        for _ in range(min(WOKEN, len(queue))):
            queue.popleft().set()

    async def changed(self, job_id: int, most_s: float) -> None:
        """Returns when a step of the job has ended, or after that time; after a longer time if many
        wait for the same job."""
        event = asyncio.Event()
        queue = self._waiting.setdefault(job_id, deque())
        queue.append(event)
        most_s *= 1 + len(queue) / MANY
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(event.wait(), most_s)
        finally:
            with suppress(ValueError):
                queue.remove(event)
            if not queue and self._waiting.get(job_id) is queue:
                del self._waiting[job_id]
