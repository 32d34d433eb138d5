"""Follow the logs of running members: kubelet rotates a log, and serves only the newest file."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Protocol

from odcd.clock import Clock
from odcd.errors import RunnerDown
from odcd.executor.kubernetes.background import Background
from odcd.executor.kubernetes.cluster import ApiRefused
from odcd.executor.kubernetes.naming import Key, member_facts
from odcd.executor.kubernetes.output import PodOutput, Reading

log = logging.getLogger(__name__)

MOST = 2000
SAVE_BYTES = 4 * 1024 * 1024
"""Output is stored each time that a member has written so much more, which is less than kubelet's
limit of a file; a new leader reads the rest."""
IDLE_BYTES = 256 * 1024
"""The same for a member that pauses."""
SAVE_S = 2.0
BYTES_PER_S = 32 * 1024 * 1024
"""Of all logs together: reading must leave time for everything else."""
OPENING = 32
"""A new leader opens the logs of all running members: at most so many at once."""
RETRY_S = (1.0, 300.0)
END_S = 5.0
"""How long a log that ends may precede the report that its member has ended."""
DROP_S = 10.0
"""How long the rest of a log may take whose pod is gone."""
NOT_FOUND = 404


class Follower(Protocol):
    """The part of Followers that ends members."""

    def begin(self, key: Key, namespace: str) -> None: ...
    def note_end(self, key: Key) -> None: ...
    async def checkpoint(self, key: Key) -> bool: ...
    async def finish(self, key: Key, timeout_s: float) -> bool: ...
    def forget(self, key: Key) -> None: ...


@dataclass(slots=True)
class _Follow:
    namespace: str
    over: asyncio.Event = field(default_factory=asyncio.Event)
    """The member has ended."""
    done: asyncio.Event = field(default_factory=asyncio.Event)
    reading: Reading | None = None
    task: asyncio.Task[None] | None = None
    is_open: bool = False
    is_stored: bool = False
    looked_at: int = 0
    """How many bytes had been read when the need to store them was last checked."""


class Throttle:
    """Limits the rate of many readers together."""

    def __init__(self, clock: Clock, bytes_per_s: float) -> None:
        self._clock = clock
        self._rate = bytes_per_s
        self._free_s = 0.0

    async def take(self, size: int) -> None:
        now_s = self._clock.monotonic()
        self._free_s = max(self._free_s, now_s) + size / self._rate
        if self._free_s - now_s > 1.0:
            await self._clock.sleep(self._free_s - now_s)


class Followers:
    def __init__(
        self, output: PodOutput, background: Background, clock: Clock, most: int = MOST
    ) -> None:
        """most: how many members are followed at the same time; others wait for their turn."""
        self._output = output
        self._background = background
        self._clock = clock
        self._most = most
        self._follows: dict[Key, _Follow] = {}
        self._waiting: dict[Key, str] = {}
        self._active = 0
        self._turns = asyncio.Semaphore(OPENING)
        self._throttle = Throttle(clock, BYTES_PER_S)

    def works(self) -> dict[str, Callable[[], Coroutine[object, object, None]]]:
        """The loop that stores what was read, by name; it runs until cancelled."""
        return {"outputs": self._store}

    async def _store(self) -> None:
        while True:
            await self._clock.sleep(SAVE_S)
            for key, follow in list(self._follows.items()):
                reading = follow.reading
                if reading is None or follow.done.is_set():
                    continue
                written = reading.short.written
                pauses, follow.looked_at = follow.looked_at == written, written
                least = IDLE_BYTES if pauses and written >= SAVE_BYTES else SAVE_BYTES
                if written - reading.saved >= least:
                    await self._output.save(key, reading, ended=False)

    def begin(self, key: Key, namespace: str) -> None:
        """A member runs. Can be called again."""
        if key in self._follows or key in self._waiting:
            return
        if self._active >= self._most:
            self._waiting[key] = namespace
            return
        self._active += 1
        follow = self._follows[key] = _Follow(namespace)
        self._background.spawn(self._run(key, follow))

    def note_end(self, key: Key) -> None:
        self._waiting.pop(key, None)
        if key in self._follows:
            self._follows[key].over.set()

    def forget(self, key: Key) -> None:
        """Its pod is gone."""
        self.note_end(key)
        if key in self._follows:
            self._background.spawn(self._drop(key))

    async def _drop(self, key: Key) -> None:
        """The connection may hang: the node may be lost."""
        await self.finish(key, DROP_S)
        self._follows.pop(key, None)

    async def checkpoint(self, key: Key) -> bool:
        """Store what was read so far. Return whether the log is being followed."""
        follow = self._follows.get(key)
        if follow is None or follow.reading is None or not follow.is_open:
            return False
        if not follow.done.is_set():
            await self._output.save(key, follow.reading, ended=False)
        return True

    async def refresh(self, key: Key) -> None:
        """Store what was read so far, if kubelet may have rotated the log."""
        follow = self._follows.get(key)
        if follow is None or follow.reading is None or follow.done.is_set():
            return
        written = follow.reading.short.written
        if written >= SAVE_BYTES and written > follow.reading.saved:
            await self._output.save(key, follow.reading, ended=False)

    async def finish(self, key: Key, timeout_s: float) -> bool:
        """A member has ended: wait until the rest of its log is stored. Return whether all of it
        is."""
        self.note_end(key)
        follow = self._follows.get(key)
        if follow is None:
            return False
        try:
            async with asyncio.timeout(timeout_s):
                await follow.done.wait()
        except TimeoutError:
            if follow.task is not None:
                follow.task.cancel()
            if follow.reading is not None and follow.reading.short.written:
                await self._output.save(key, follow.reading, ended=False)
        return follow.is_stored

    async def _run(self, key: Key, follow: _Follow) -> None:
        follow.task = asyncio.current_task()
        try:
            await self._follow(key, follow)
        except RunnerDown as error:
            log.warning("kubernetes.output_lost", extra={**member_facts(key), "why": error.message})
        finally:
            follow.done.set()
            self._active -= 1
            while self._waiting and self._active < self._most:
                waiting = next(iter(self._waiting))
                self.begin(waiting, self._waiting.pop(waiting))

    async def _follow(self, key: Key, follow: _Follow) -> None:
        reading = follow.reading = await self._output.resume(key)
        await self._read_until_over(key, follow, reading)
        try:
            # A log also ends when kubelet restarts: read what may have followed.
            await self._read(key, follow, reading, to_end=True)
        except ApiRefused as error:
            if not follow.is_open:
                return
            log.info("kubernetes.log_gone", extra={**member_facts(key), "why": str(error)})
        except RunnerDown:
            if reading.short.written:
                await self._output.save(key, reading, ended=False)
            raise
        await self._output.save(key, reading)
        follow.is_stored = True

    async def _read_until_over(self, key: Key, follow: _Follow, reading: Reading) -> None:
        pause_s = RETRY_S[0]
        while not follow.over.is_set():
            before, least_s = reading.position, RETRY_S[0]
            try:
                await self._read(key, follow, reading)
                least_s = END_S
            except ApiRefused as error:
                if error.status == NOT_FOUND:
                    return
            except RunnerDown:
                pass
            pause_s = least_s if reading.position != before else max(pause_s, least_s)
            try:
                async with asyncio.timeout(pause_s):
                    await follow.over.wait()
            except TimeoutError:
                pause_s = min(2 * pause_s, RETRY_S[1])

    async def _read(
        self, key: Key, follow: _Follow, reading: Reading, *, to_end: bool = False
    ) -> None:
        """to_end: only the part that there is; otherwise until the container ends."""
        await self._turns.acquire()
        waits = True

        def opened() -> None:
            nonlocal waits
            follow.is_open = True
            if waits:
                waits = False
                self._turns.release()

        try:
            async for size in self._output.read_on(
                key, follow.namespace, reading, follow=not to_end, on_open=opened
            ):
                await self._throttle.take(size)
        finally:
            if waits:
                self._turns.release()
