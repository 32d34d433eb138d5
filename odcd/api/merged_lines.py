"""Lines of several outputs in one stream, each after the label of its output."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing

from odcd.errors import OdcError

MAX_LINE = 64 * 1024
"""A longer line is sent in parts."""
LINES_BYTES = 8 * 1024
"""Short lines are sent together, up to this size without their labels."""
DEPTH = 8
"""How many of these may wait for the client: a slow client slows all outputs down."""

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
                data, at = rest + piece, 0
                while taken := _next_lines(data, at):
                    lines, at = taken
                    await self.put(label + lines.replace(b"\n", b"\n" + label) + b"\n")
                rest = data[at:]
        if rest:
            await self.put(label + rest + b"\n")


def _next_lines(data: bytes, at: int) -> tuple[bytes, int] | None:
    """Whole lines from there on, without the last line break, and where the next ones begin. Only a
    few of them at a time: thousands of outputs may wait for one client, and objects for all lines
    of a piece take many times its size."""
    if (end := data.rfind(b"\n", at, at + LINES_BYTES)) >= 0:
        return data[at:end], end + 1
    if (end := data.find(b"\n", at, at + MAX_LINE + 1)) >= 0:
        return data[at:end], end + 1
    if len(data) - at > MAX_LINE:
        return data[at : at + MAX_LINE], at + MAX_LINE
    return None


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
