"""Read a file that may still grow."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial

from odcd.clock import Clock
from odcd.executor.file_threads import FileThreads

CHUNK_BYTES = 64 * 1024
"""A piece stays in memory until its client has read it, and a user may follow many outputs."""
SOONEST_S = 0.01
LATEST_S = 0.1


async def tail(
    fd: int,
    clock: Clock,
    is_over: Callable[[], Awaitable[bool]] | None,
    threads: FileThreads,
    uid: int,
) -> AsyncGenerator[bytes]:
    """The content from the beginning; with is_over, also what is added until that returns true.

    If the file becomes shorter, it is read again from its beginning. The caller keeps the
    descriptor. uid: the owner of the file. Raises OSError.
    """
    offset = 0
    pause_s = SOONEST_S
    while True:
        # Checked before the read, so that everything written before the end is read.
        over = is_over is None or await is_over()
        data = await threads.run(uid, partial(os.pread, fd, CHUNK_BYTES, offset))
        if data:
            offset += len(data)
            pause_s = SOONEST_S
            yield data
            continue
        if over:
            return
        if (await threads.run(uid, partial(os.fstat, fd))).st_size < offset:
            offset = 0
            continue
        await clock.sleep(pause_s)
        pause_s = min(pause_s * 2, LATEST_S)
