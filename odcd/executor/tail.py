"""Read a file that may still grow."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial

from odcd.clock import Clock
from odcd.executor.file_threads import FileThreads

CHUNK_BYTES = 256 * 1024
SOONEST_S = 0.01
LATEST_S = 0.1


async def tail(
    fd: int,
    clock: Clock,
    is_over: Callable[[], Awaitable[bool]] | None,
    threads: FileThreads,
    uid: int,
) -> AsyncGenerator[bytes]:
    """Its content from the beginning; with is_over, what is added too, until that is true.

    A file that became shorter is read again from its beginning. The descriptor stays the caller's.
    uid: whose file it is. Raises OSError.
    """
    offset = 0
    pause_s = SOONEST_S
    while True:
        # Asked before the read, so that what was written before the end is read.
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
