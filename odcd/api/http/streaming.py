"""Long answers: they end when the client disconnects, and when the daemon stops."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping
from contextlib import aclosing
from enum import Enum
from typing import Any, Self, TypeVar

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from odcd.errors import OdcError
from odcd.fairness.answers import SMALL

log = logging.getLogger(__name__)

FIRST_PIECE_S = 0.2

T = TypeVar("T")


class Broken(Exception):
    """An answer could not be completed: cut the connection, so that it is not taken for
    complete."""


class ClientGone(Exception):
    """The client disconnected before it was answered."""


class _End(Enum):
    DONE = "done"
    GONE = "the client disconnected"
    STOPPED = "the daemon stops, or the caller's key has ended"


class Begun:
    """A generator whose first piece has been requested. So an immediate error becomes an error
    response instead of a broken answer."""

    def __init__(self, pieces: AsyncGenerator[bytes]) -> None:
        self._pieces = pieces
        self._first: asyncio.Task[bytes] | None = None

    async def begin(self) -> Self:
        """Wait briefly for the first piece. Raises the error that the generator raises instead."""
        self._first = asyncio.create_task(self._next(), name="first-piece")
        try:
            async with asyncio.timeout(FIRST_PIECE_S):
                await asyncio.shield(self._first)
        except TimeoutError:
            pass
        except BaseException:
            await self.aclose()
            raise
        return self

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._first is not None:
            piece, self._first = await self._first, None
            return piece
        return await anext(self._pieces)

    async def _next(self) -> bytes:
        return await anext(self._pieces, b"")

    async def aclose(self) -> None:
        if self._first is not None:
            self._first.cancel()
            await asyncio.gather(self._first, return_exceptions=True)
            self._first = None
        await self._pieces.aclose()


class Streamed(Response):
    """A body sent piece by piece, under the client's flow control, from a generator that is always
    closed at the end."""

    def __init__(
        self,
        pieces: AsyncGenerator[bytes] | Begun,
        *,
        media_type: str,
        stopping: asyncio.Event,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(
            media_type=media_type, headers={"cache-control": "no-store", **(headers or {})}
        )
        del self.headers["content-length"]
        self._pieces = pieces
        self._stops = [stopping]

    def until(self, stop: asyncio.Event) -> None:
        """Also stop when this event is set."""
        self._stops.append(stop)

    def through(
        self, change: Callable[[AsyncGenerator[bytes] | Begun], AsyncGenerator[bytes]]
    ) -> None:
        """Send the result of this function instead of the pieces."""
        self._pieces = change(self._pieces)

    async def abandon(self) -> None:
        """Close the generator without sending anything."""
        await self._pieces.aclose()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"type": "http.response.start", "status": self.status_code}
        async with aclosing(self._pieces):
            await send({**start, "headers": self.raw_headers})
            end = await _first(self._send(send), receive, *self._stops)
        if end is _End.DONE:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        elif end is _End.STOPPED:
            raise Broken(end.value)

    async def _send(self, send: Send) -> None:
        try:
            async for piece in self._pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        except OdcError as error:
            log.warning("stream.broken", extra={"code": error.code, "why": error.message})
            raise Broken(error.message) from error


async def unless_gone(work: Coroutine[Any, Any, T], receive: Receive) -> T:
    """Do the work; cancel it when the client disconnects. Raises ClientGone."""
    done: list[T] = []

    async def keep() -> None:
        done.append(await work)

    if await _first(keep(), receive) is _End.GONE:
        raise ClientGone
    return done[0]


async def _first(work: Coroutine[Any, Any, None], receive: Receive, *stops: asyncio.Event) -> _End:
    """Run work until it is done, the client disconnects or one of stops is set.

    Raises the exception that work raises.
    """
    failure: list[Exception] = []

    async def run() -> None:
        try:
            await work
        except Exception as error:
            failure.append(error)

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    async with asyncio.TaskGroup() as group:
        working = group.create_task(run(), name="answer")
        watching = group.create_task(watch(), name="watch-client")
        stopping = [group.create_task(stop.wait(), name="watch-stop") for stop in stops]
        tasks = (working, watching, *stopping)
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        end = _End.DONE if working.done() else _End.GONE if watching.done() else _End.STOPPED
        for task in tasks:
            task.cancel()
    if failure:
        raise failure[0]
    return end


async def send_in_pieces(response: Response, scope: Scope, receive: Receive, send: Send) -> None:
    """A large answer goes piece by piece, so that this lasts until the client has read it."""
    if isinstance(response, Streamed) or len(response.body) <= SMALL:
        await response(scope, receive, send)
        return
    start = {"type": "http.response.start", "status": response.status_code}
    await send({**start, "headers": response.raw_headers})
    body = memoryview(response.body)
    for at in range(0, len(body), SMALL):
        piece = bytes(body[at : at + SMALL])
        more = at + SMALL < len(body)
        await send({"type": "http.response.body", "body": piece, "more_body": more})
