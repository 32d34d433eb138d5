"""Calls that may never return, in threads that are not waited for."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


class Hangs(Exception):
    """The call has not returned; no other call is made until it does."""


class Apart:
    """Runs one call at a time. asyncio's own threads would keep the daemon from exiting."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._thread: threading.Thread | None = None

    async def run(self, call: Callable[[], T]) -> T:
        """Return or raise the result of the call. Raises Hangs on a timeout."""
        if self._thread is not None and self._thread.is_alive():
            raise Hangs("the last call has not returned yet")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()

        def work() -> None:
            try:
                result = call()
            except Exception as error:
                self._tell(loop, answer, answer.set_exception, error)
            else:
                self._tell(loop, answer, answer.set_result, result)

        self._thread = threading.Thread(target=work, name="apart", daemon=True)
        self._thread.start()
        try:
            async with asyncio.timeout(self._timeout_s):
                return await answer
        except TimeoutError:
            raise Hangs(f"it has not returned within {self._timeout_s:g} s") from None

    @staticmethod
    def _tell(
        loop: asyncio.AbstractEventLoop, answer: asyncio.Future[Any],
        tell: Callable[[Any], None], what: object,
    ) -> None:  # fmt: skip
        def done() -> None:
            if not answer.done():
                tell(what)

        # The loop may have closed in the meantime.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(done)
