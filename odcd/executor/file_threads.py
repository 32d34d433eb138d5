"""Access users' files in threads, because a user's file system may never respond.

asyncio's own threads are few and shared by everyone, and the process would wait for them when it
exits.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeVar

PER_USER = 2
T = TypeVar("T")


class _Task(NamedTuple):
    future: asyncio.Future[Any]
    work: Callable[[], Any]
    drop: Callable[[Any], None] | None


@dataclass(slots=True)
class _User:
    threads: int = 0
    waiting: deque[_Task] = field(default_factory=deque[_Task])


class FileThreads:
    """Two threads per user whose files are accessed; further work of that user waits."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users: dict[int, _User] = {}

    async def run(
        self, uid: int, work: Callable[[], T], *, drop: Callable[[T], None] | None = None
    ) -> T:
        """uid: the owner of the file. Work that has begun continues after a cancellation; drop then
        receives its result."""
        task = _Task(asyncio.get_running_loop().create_future(), work, drop)
        self._add(uid, task)
        return await task.future

    def close(self, uid: int, fd: int) -> None:
        """Close a user's file in the background: this may also block on its file system."""
        self._later(uid, partial(os.close, fd))

    def _later(self, uid: int, work: Callable[[], None]) -> None:
        def quietly() -> None:
            with suppress(OSError):
                work()

        self._add(uid, _Task(asyncio.get_running_loop().create_future(), quietly, None))

    def _add(self, uid: int, task: _Task) -> None:
        with self._lock:
            user = self._users.setdefault(uid, _User())
            user.waiting.append(task)
            if user.threads == PER_USER:
                return
            user.threads += 1
        threading.Thread(target=self._serve, args=(uid, user), name="files", daemon=True).start()

    def _serve(self, uid: int, user: _User) -> None:
        while True:
            with self._lock:
                if not user.waiting:
                    user.threads -= 1
                    if not user.threads:
                        del self._users[uid]
                    return
                task = user.waiting.popleft()
            if task.future.cancelled():
                continue
            result, error = None, None
            try:
                result = task.work()
            except Exception as raised:
                error = raised
            try:
                task.future.get_loop().call_soon_threadsafe(self._tell, uid, task, result, error)
            except RuntimeError:  # the loop has ended
                return

    def _tell(self, uid: int, task: _Task, result: Any, error: Exception | None) -> None:
        if task.future.cancelled():
            if error is None and task.drop is not None:
                self._later(uid, partial(task.drop, result))
        elif error is None:
            task.future.set_result(result)
        else:
            task.future.set_exception(error)
