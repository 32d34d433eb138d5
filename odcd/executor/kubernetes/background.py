"""Tasks of an executor that continue between its calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine


class Background:
    """Not a TaskGroup: the tasks live from open() to close(), which are separate calls."""

    def __init__(self, on_failure: Callable[[], None]) -> None:
        """on_failure: called when a task has failed; observe() then raises the error."""
        self.failed: BaseException | None = None
        """The error of the last failed task."""
        self._on_failure = on_failure
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def runs(self) -> bool:
        return bool(self._tasks)

    def spawn(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._note_end)

    def _note_end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self.failed = error
            self._on_failure()

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
