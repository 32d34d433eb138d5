"""The output of members: pod logs while the pod exists, stored in the database afterwards."""

from __future__ import annotations

import zlib
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from odcd.clock import Clock
from odcd.errors import RunnerDown, WrongState
from odcd.executor.kubernetes.cluster import ApiRefused, Cluster
from odcd.executor.kubernetes.naming import Key, Namespaces, pod_name
from odcd.records.dispatch import Dispatch

HEAD_BYTES = 64 * 1024
READ_BYTES = 64 * 1024
LOOK_S = 0.5
READ_S = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The output of an ended member. written: its total bytes; content may lack the middle."""

    content: bytes
    written: int


class OutputStore(Protocol):
    async def save(self, key: Key, content: bytes, written: int, now: datetime) -> None: ...
    async def get(self, key: Key) -> tuple[bytes, int] | None: ...
    async def is_live(self, job_id: int, attempt: int) -> bool: ...


class Shortened:
    """Keeps the beginning and the end of its input."""

    def __init__(self, limit: int) -> None:
        self._limit = max(limit, 2 * HEAD_BYTES)
        self._head = bytearray()
        self._tail = bytearray()
        self.written = 0

    def feed(self, data: bytes) -> None:
        self.written += len(data)
        room = HEAD_BYTES - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        over = len(self._tail) - (self._limit - HEAD_BYTES)
        if over > READ_BYTES:
            del self._tail[:over]

    def content(self) -> bytes:
        tail = self._tail[max(0, len(self._tail) - (self._limit - HEAD_BYTES)) :]
        cut = self.written - len(self._head) - len(tail)
        mark = b"\n[odc: %d bytes are not kept here]\n" % cut if cut else b""
        return bytes(self._head) + mark + bytes(tail)


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

    async def keep(
        self, key: Key, namespace: str, *, follow: bool, on_open: Callable[[], None] = lambda: None
    ) -> None:
        """Store a pod's log in the database; with follow, until its container ends. Of two copies
        the longer one is kept. If the log cannot be read, an explanation is stored instead.
        on_open: called once the log is open. Raises RunnerDown when the API server does not answer;
        the part read so far is stored."""
        short = Shortened(self._limit)
        explanation = b""
        try:
            async for piece in self._read(key, namespace, follow=follow, on_open=on_open):
                short.feed(piece)
        except ApiRefused as error:
            explanation = f"[odc: the output could not be read: {error.message}]\n".encode()
        except RunnerDown:
            if short.written:
                await self._write(key, short.content(), short.written)
            raise
        await self._write(key, short.content() if short.written else explanation, short.written)

    async def _write(self, key: Key, content: bytes, written: int) -> None:
        await self._store.save(key, zlib.compress(content, 6), written, self._clock.now())

    async def _read(
        self, key: Key, namespace: str, *, follow: bool, on_open: Callable[[], None] = lambda: None
    ) -> AsyncGenerator[bytes]:
        path = f"/api/v1/namespaces/{namespace}/pods/{pod_name(*key)}/log"
        query = [("follow", "true" if follow else "false")]
        async with self._cluster.stream(
            path, query, silence_s=None if follow else READ_S
        ) as response:
            on_open()
            async for piece in response.content.iter_chunked(READ_BYTES):
                yield piece

    async def logs(self, dispatch: Dispatch, rank: int, *, follow: bool) -> AsyncGenerator[bytes]:
        """See odcd.executor.base. Raises WrongState when the output cannot be read."""
        key = (*dispatch.key, rank)
        sent = 0
        over = False
        while True:
            kept = await self._store.get(key)
            if kept is not None:
                if not sent:
                    yield zlib.decompress(kept[0])
                elif sent < kept[1]:
                    whole = zlib.decompress(kept[0])
                    yield whole[sent:] if len(whole) == kept[1] else whole
                return
            try:
                for namespace in (self._namespaces.batch, self._namespaces.dev):
                    try:
                        skip = sent
                        async for piece in self._read(key, namespace, follow=follow):
                            # After an interruption the log is read from the beginning again.
                            rest = piece[skip:]
                            skip = max(0, skip - len(piece))
                            if rest:
                                sent += len(rest)
                                yield rest
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

    async def _is_over(self, key: Key, namespace: str) -> bool:
        path = f"/api/v1/namespaces/{namespace}/pods/{pod_name(*key)}"
        try:
            body = await self._cluster.get(path)
        except ApiRefused as error:
            return error.status == 404
        return b'"terminated":' in body
