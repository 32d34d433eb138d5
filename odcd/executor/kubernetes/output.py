"""The output of members: pod logs while the pod exists, stored in the database afterwards."""

from __future__ import annotations

import asyncio
import zlib
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from odcd.clock import Clock
from odcd.errors import RunnerDown, WrongState
from odcd.executor.kubernetes.cluster import ApiRefused, Cluster, Status
from odcd.executor.kubernetes.log_lines import LogLines, Position
from odcd.executor.kubernetes.naming import Key, Namespaces, pod_name
from odcd.executor.kubernetes.shortened import HEAD_BYTES, Shortened
from odcd.records.dispatch import Dispatch
from odcd.records.output import StoredOutput

READ_BYTES = 64 * 1024
LOOK_S = 0.5
READ_S, QUIET_S = 30.0, 900.0
"""A connection that is silent for so long may be dead: it is opened again."""
FEW, GATHER_S = 8, 0.05
"""After so many small pieces in a row, and for how long, more output is awaited."""
NO_LOG = b"unable to retrieve container logs"
"""With this kubelet begins the log of a container that it has removed, with status 200. A line that
a container wrote begins with its time."""
LARGE_BYTES = 64 * 1024
"""Larger outputs are compressed in a thread."""


class OutputStore(Protocol):
    async def save(
        self, key: Key, content: bytes, written: int, now: datetime, through: str | None = None
    ) -> None: ...
    async def get(self, key: Key) -> StoredOutput | None: ...
    async def is_live(self, job_id: int, attempt: int) -> bool: ...


@dataclass(slots=True, kw_only=True)
class Reading:
    """The output of one member that has been read so far."""

    short: Shortened
    position: Position | None = None
    saved: int = 0
    """Of how many bytes the database has the beginning and the end."""


class PodOutput:
    def __init__(
        self, cluster: Cluster, store: OutputStore, clock: Clock, namespaces: Namespaces, limit: int
    ) -> None:
        """limit: the maximum number of bytes stored per member."""
        self._cluster = cluster
        self._store = store
        self._clock = clock
        self._namespaces = namespaces
        self._limit = limit
        self.refresh: Callable[[Key], Awaitable[None]] | None = None
        """Store what was read of a member's log, if kubelet may have rotated it."""

    async def resume(self, key: Key) -> Reading:
        """Continue where this or another daemon last stored the output of a member that runs."""
        stored = await self._store.get(key)
        if stored is None or stored.through is None:
            return Reading(short=Shortened(self._limit))
        content = zlib.decompress(stored.content)
        return Reading(
            short=Shortened.resume(self._limit, content, stored.written),
            position=Position.parse(stored.through), saved=stored.written,
        )  # fmt: skip

    async def read_on(
        self, key: Key, namespace: str, reading: Reading, *, follow: bool,
        on_open: Callable[[], None] = lambda: None,
    ) -> AsyncGenerator[int]:  # fmt: skip
        """Read the rest of a pod's log, with follow until its container ends. Yields the size of
        each piece after it was read. Raises ApiRefused, RunnerDown."""
        if reading.position is None and reading.short.written:
            # It has no times, so all of it is read again.
            reading.short = Shortened(self._limit)
        lines = LogLines(reading.position)
        pieces = self._pieces(key, namespace, reading.position, follow=follow, on_open=on_open)
        async for piece in pieces:
            reading.short.feed(lines.feed(piece))
            reading.position = lines.position
            yield len(piece)
        reading.short.feed(lines.end())

    async def keep(
        self, key: Key, namespace: str, *, follow: bool, on_open: Callable[[], None] = lambda: None
    ) -> None:
        """Store a pod's log in the database; with follow, until its container ends. Of two copies
        the longer one is kept. If the log cannot be read, an explanation is stored instead.
        on_open: called once the log is open. Raises RunnerDown when the API server does not answer;
        the part read so far is stored."""
        reading = await self.resume(key)
        explanation = b""
        try:
            async for _ in self.read_on(key, namespace, reading, follow=follow, on_open=on_open):
                pass
        except ApiRefused as error:
            explanation = f"[odc: the output could not be read: {error.message}]\n".encode()
        except RunnerDown:
            if reading.short.written:
                await self.save(key, reading, ended=False)
            raise
        await self.save(key, reading, explanation)

    async def save(
        self, key: Key, reading: Reading, explanation: bytes = b"", *, ended: bool = True
    ) -> None:
        """Store what was read; explanation: if nothing was. ended: it is complete."""
        written = reading.short.written
        content = reading.short.content() if written else explanation
        through = None if ended or reading.position is None else str(reading.position)
        if len(content) > LARGE_BYTES:
            packed = await asyncio.to_thread(zlib.compress, content, 6)
        else:
            packed = zlib.compress(content, 6)
        await self._store.save(key, packed, written, self._clock.now(), through)
        reading.saved = written

    async def _pieces(
        self, key: Key, namespace: str, after: Position | None, *, follow: bool,
        on_open: Callable[[], None] = lambda: None,
    ) -> AsyncGenerator[bytes]:  # fmt: skip
        path = f"/api/v1/namespaces/{namespace}/pods/{pod_name(*key)}/log"
        query = [("follow", "true" if follow else "false"), ("timestamps", "true")]
        if after is not None:
            query.append(("sinceTime", after.since))
        silence_s = QUIET_S if follow else READ_S
        async with self._cluster.stream(path, query, silence_s=silence_s) as response:
            on_open()
            small, first = 0, True
            async for piece in response.content.iter_chunked(READ_BYTES):
                if first and piece.startswith(NO_LOG):
                    text = piece.decode(errors="replace")
                    raise ApiRefused(503, Status(message=text), None)
                first = False
                yield piece
                small = small + 1 if len(piece) < READ_BYTES // 2 else 0
                if small > FEW:
                    # kubelet sends each line by itself: let some arrive.
                    await self._clock.sleep(GATHER_S)

    # -- for users --------------------------------------------------------------------------------

    async def logs(self, dispatch: Dispatch, rank: int, *, follow: bool) -> AsyncGenerator[bytes]:
        """See odcd.executor.base. Raises WrongState when the output cannot be read."""
        key = (*dispatch.key, rank)
        shown = _Shown()
        over = False
        if self.refresh is not None:
            await self.refresh(key)
        while True:
            stored = await self._store.get(key)
            if stored is not None:
                is_all = stored.through is None or over
                if (is_all or not shown.size) and (rest := shown.add_stored(stored)):
                    yield rest
                if is_all:
                    return
            try:
                for namespace in (self._namespaces.batch, self._namespaces.dev):
                    try:
                        async for text in self._show(key, namespace, shown, follow=follow):
                            yield text
                        if not follow or await self._is_over(key, namespace):
                            return
                        break
                    except ApiRefused as error:
                        if error.status != 404:
                            raise
                else:
                    if not follow:
                        return
            except ApiRefused as error:
                # Status 400: the container is being created.
                if error.status != 400 and not error.passing:
                    raise WrongState(
                        f"the output of job {key[0]} cannot be read: {error.message}"
                    ) from error
                if not follow:
                    return
            except RunnerDown:
                if not follow:
                    raise
            if over:
                return
            # A job can end before its output is stored: check once more.
            over = not await self._store.is_live(*dispatch.key)
            await self._clock.sleep(LOOK_S)

    async def _show(
        self, key: Key, namespace: str, shown: _Shown, *, follow: bool
    ) -> AsyncGenerator[bytes]:
        """The part of the log that was not shown yet."""
        lines = LogLines(shown.position)
        async for piece in self._pieces(key, namespace, shown.position, follow=follow):
            text = lines.feed(piece)
            shown.position = lines.position
            if text:
                shown.size += len(text)
                yield text
        if text := lines.end():
            shown.size += len(text)
            yield text

    async def _is_over(self, key: Key, namespace: str) -> bool:
        path = f"/api/v1/namespaces/{namespace}/pods/{pod_name(*key)}"
        try:
            body = await self._cluster.get(path)
        except ApiRefused as error:
            return error.status == 404
        return b'"terminated":' in body


@dataclass(slots=True)
class _Shown:
    """The part of a member's output that a user has seen. size: in bytes."""

    size: int = 0
    position: Position | None = None

    def add_stored(self, stored: StoredOutput) -> bytes:
        """The part of stored output that was not shown yet."""
        missing = stored.written - self.size
        if self.size and missing <= 0:
            return b""
        whole = zlib.decompress(stored.content)
        known = self.size > 0
        self.size = stored.written
        if stored.through is not None:
            self.position = Position.parse(stored.through)
        is_whole = len(whole) == stored.written
        if known and (is_whole or missing <= len(whole) - 2 * HEAD_BYTES):
            return whole[-missing:]
        return whole
