"""Read events once and send them to many clients: server-sent events and long polls.

One task reads new events when the database notifies it, and also at intervals in case a
notification was lost. Clients that need the past read it from the database themselves.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing, contextmanager, suppress
from typing import Protocol

from odcd.clock import TURN_S, Clock, SharedTurns
from odcd.errors import OdcError
from odcd.events.event import Event, EventFilter, Heartbeat, Lagged, Reader
from odcd.events.pages import EventPages, read_page
from odcd.records.job import Selector

log = logging.getLogger(__name__)

KEPT = 4_096
"""Events in memory, shared by all clients. A client that falls this far behind must reconnect."""
SWEEP_S = 2.0
"""The maximum delay after a lost notification, while any client listens."""
AGAIN_S = 0.1
"""Read again this long after a notification: an open transaction may have held an event back."""
PAUSE_S = 0.02
"""The minimum time between two reads, so that a storm of notifications costs little."""
HEARTBEAT_S = 15.0
PAST_REST_S = 2 * TURN_S


class EventStore(EventPages, Protocol):
    async def get_last(self) -> int: ...
    async def list_settled(self, job_ids: list[int]) -> list[int]: ...
    async def get_results(self, selector: Selector) -> str | None: ...


class EventHub:
    def __init__(self, store: EventStore, clock: Clock, *, kept: int = KEPT) -> None:
        self._store = store
        self._clock = clock
        self._woken = asyncio.Event()
        self._closing = asyncio.Event()
        self._kept: deque[Event] = deque(maxlen=kept)
        self._published = 0
        self._news = asyncio.Event()
        self._clients = 0
        self._position: int | None = None
        self._starting = asyncio.Lock()
        self._waits: dict[int, set[asyncio.Event]] = {}
        self._task_waits: set[asyncio.Event] = set()
        self._turns = SharedTurns()
        """Shared by all streams: each event becomes ready for all of them at once."""
        self._past_turns = SharedTurns(rest_s=PAST_REST_S)
        """Shared by all streams that read the past: they use a third of the time at most."""

    @property
    def closing(self) -> asyncio.Event:
        """Set when every stream and long poll must end."""
        return self._closing

    @property
    def clients(self) -> int:
        """The number of clients that follow."""
        return self._clients

    def wake(self) -> None:
        """Something may have happened. Cheap, and harmless if nothing did."""
        self._woken.set()

    def close(self) -> None:
        self._closing.set()
        self._announce()
        for waiting in [*self._task_waits, *(w for ws in self._waits.values() for w in ws)]:
            waiting.set()

    async def run(self) -> None:
        """Read new events and pass them on, until cancelled."""
        again = False
        while True:
            listened = bool(self._clients or self._waits or self._task_waits)
            with suppress(TimeoutError):
                async with asyncio.timeout((AGAIN_S if again else SWEEP_S) if listened else None):
                    await self._woken.wait()
            again = self._woken.is_set()
            self._woken.clear()
            try:
                await self._look()
            except OdcError as error:
                log.warning("events.unread", extra={"code": error.code, "why": error.message})
                self._announce()
                await self._clock.sleep(1.0)
            await self._clock.sleep(PAUSE_S)

    async def _look(self) -> None:
        if self._clients:
            async with self._starting:
                await self._read()
        else:
            self._position = None
        if self._waits:
            for job_id in await self._store.list_settled(list(self._waits)):
                for waiting in self._waits.get(job_id, ()):
                    waiting.set()
        for waiting in self._task_waits:
            waiting.set()

    async def _read(self) -> None:
        while self._position is not None:
            page, self._position, more = await read_page(self._store, self._position)
            self._kept.extend(page)
            self._published += len(page)
            if page:
                self._announce()
            if not more:
                break

    def _announce(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    async def stream(
        self,
        after: int | None,
        *,
        job_id: int | None = None,
        matches: EventFilter | None = None,
        follow: bool = True,
        heartbeat_s: float = HEARTBEAT_S,
    ) -> AsyncGenerator[Event | Heartbeat | Lagged]:
        """Events after the id `after` (None: only new ones); with follow, also new ones as they
        come.

        job_id: only events of this job or array; matches filters further. Ends when the hub closes.
        """
        with self._client():
            position = await self._start_reading()
            reader = Reader(job_id, matches, position if after is None else after)
            if after is not None:
                async with aclosing(self._past(reader)) as history:
                    async for event in history:
                        yield event
            if follow:
                async with aclosing(self._catch_up(reader)) as recent:
                    async for event in recent:
                        yield event
                async with aclosing(self._live(reader, heartbeat_s)) as live:
                    async for item in live:
                        yield item

    async def _start_reading(self) -> int:
        """Return the id of the newest event that was read; before the first one, of the newest in
        the database."""
        async with self._starting:
            if self._position is None:
                self._position = await self._store.get_last()
        return self._position

    async def _past(self, reader: Reader, *, mark: bool = False) -> AsyncGenerator[Event]:
        """Events that the database has after the reader's. mark: remember their ids."""
        while not self._closing.is_set():
            page, last_id, more = await read_page(self._store, reader.last_id, reader.job_id)
            for event in page:
                if self._past_turns.are_due():
                    await self._past_turns.take()
                reader.last_id = event.id
                if mark:
                    reader.seen.add(event.id)
                if reader.wants(event):
                    yield event
            reader.last_id = last_id
            if not more:
                return

    async def _catch_up(self, reader: Reader) -> AsyncGenerator[Event]:
        """Events up to those in memory, from where _live continues. The database may already be
        ahead of memory, so _live skips the events that this returned."""
        async with self._starting:
            await self._read()
        reader.published = self._published
        async with aclosing(self._past(reader, mark=True)) as events:
            async for event in events:
                yield event

    async def _live(
        self, reader: Reader, heartbeat_s: float
    ) -> AsyncGenerator[Event | Heartbeat | Lagged]:
        """Events from memory, as they are published."""
        while not self._closing.is_set():
            news = self._news
            fresh, reader.published = self._since(reader.published), self._published
            if fresh is None:
                yield Lagged(reader.last_id)
                return
            for event in fresh:
                if self._turns.are_due():
                    await self._turns.take()
                reader.last_id = event.id
                if reader.wants_live(event):
                    yield event
            if reader.published == self._published:
                try:
                    async with asyncio.timeout(heartbeat_s):
                        await news.wait()
                except TimeoutError:
                    yield Heartbeat()
                else:
                    if reader.published == self._published and not self._closing.is_set():
                        yield Heartbeat()

    def _since(self, at: int) -> list[Event] | None:
        """Events published after the first `at`; None if memory does not reach back that far."""
        missing = self._published - at
        if missing > len(self._kept):
            return None
        return [self._kept[i] for i in range(len(self._kept) - missing, len(self._kept))]

    @contextmanager
    def _client(self) -> Generator[None]:
        self._clients += 1
        self.wake()
        try:
            yield
        finally:
            self._clients -= 1

    async def ended(self, selector: Selector, timeout_s: float) -> str | None:
        """How the jobs of a selection ended, as Store.ended returns it, once all of them have.

        None when the time is over first, or the hub closes. Raises UnknownJob.
        """
        ended = asyncio.Event()
        until = self._clock.monotonic() + timeout_s
        with self._waiting(selector, ended):
            while True:
                answer = await self._store.get_results(selector)
                left_s = until - self._clock.monotonic()
                if answer is not None or left_s <= 0 or self._closing.is_set():
                    return answer
                with suppress(TimeoutError):
                    async with asyncio.timeout(left_s):
                        await ended.wait()
                ended.clear()

    @contextmanager
    def _waiting(self, selector: Selector, ended: asyncio.Event) -> Generator[None]:
        if selector.tasks is not None:
            # Tasks get their own ids when they start, so there is no id to wait for yet.
            self._task_waits.add(ended)
        else:
            self._waits.setdefault(selector.job_id, set()).add(ended)
        self.wake()
        try:
            yield
        finally:
            self._task_waits.discard(ended)
            waits = self._waits.get(selector.job_id)
            if waits is not None:
                waits.discard(ended)
                if not waits:
                    del self._waits[selector.job_id]
