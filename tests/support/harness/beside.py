"""Servers of tests on an event loop in a thread, for tests that use no asyncio themselves."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import TypeVar

T = TypeVar("T")

START_S = 60


@contextmanager
def beside(server: AbstractAsyncContextManager[T]) -> Iterator[T]:
    ready, found = threading.Event(), list[T]()
    stop: list[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = []

    async def serve() -> None:
        async with server as one:
            end = asyncio.Event()
            found.append(one)
            stop.append((asyncio.get_running_loop(), end))
            ready.set()
            await end.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(START_S)
        yield found[0]
    finally:
        if stop:
            loop, end = stop[0]
            loop.call_soon_threadsafe(end.set)
        thread.join()
