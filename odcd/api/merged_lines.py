"""Lines of several outputs in one stream, each after the label of its output."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from odcd.errors import OdcError

MAX_LINE = 64 * 1024
"""A longer line is sent in parts."""
DEPTH = 8
"""How many lines may wait for the client: a slow client slows all outputs down."""

Pieces = AsyncGenerator[bytes]


class Lines:
    """The lines on their way to the client."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue(DEPTH)

    async def get(self) -> bytes | None:
        """None: the end."""
        return await self._queue.get()

    async def put(self, line: bytes | None) -> None:
        await self._queue.put(line)

    async def copy(self, label: bytes, pieces: Pieces) -> None:
        """Add the lines of one output. How they are divided does not depend on how they arrive, so
        a client can count them."""
        rest = b""
        async with aclosing(pieces):
            async for piece in pieces:
                *whole, rest = (rest + piece).split(b"\n")
                for line in whole:
                    await self._put_parts(label, line)
                while len(rest) > MAX_LINE:
                    await self.put(label + rest[:MAX_LINE] + b"\n")
                    rest = rest[MAX_LINE:]
        if rest:
            await self.put(label + rest + b"\n")

    async def _put_parts(self, label: bytes, line: bytes) -> None:
        for at in range(0, max(len(line), 1), MAX_LINE):
            await self.put(label + line[at : at + MAX_LINE] + b"\n")


async def merged(
    fill: Callable[[Lines, asyncio.TaskGroup], Awaitable[None]], name: str
) -> AsyncGenerator[bytes]:
    """The lines of fill(), which may copy several outputs side by side. Raises its OdcError."""
    lines = Lines()
    failure: list[BaseException] = []

    async def run() -> None:
        try:
            async with asyncio.TaskGroup() as readers:
                await fill(lines, readers)
        except* OdcError as failed:
            failure.append(failed.exceptions[0])
        await lines.put(None)

    # Not in a TaskGroup: a generator cannot be closed while it yields inside one.
    running = asyncio.create_task(run(), name=name)
    try:
        while (line := await lines.get()) is not None:
            yield line
    finally:
        running.cancel()
        await asyncio.wait([running])
    if failure:
        raise failure[0]
