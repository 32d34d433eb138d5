"""Tasks of an executor that continue between its calls."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine

from odcd.clock import Clock
from odcd.isolation import Isolation, IsolationWatch, is_at_fault, keep


class Background:
    """Not a TaskGroup: the tasks live from open() to close(), which are separate calls."""

    def __init__(
        self, on_failure: Callable[[], None], clock: Clock, watch: IsolationWatch | None = None
    ) -> None:
        """on_failure: called when a task has ended with an error that is not its item's fault, such
        as a lost term; observe() then raises the error."""
        self.failed: BaseException | None = None
        """The error of the last such task."""
        self._clock = clock
        self._watch = watch
        self._isolation = Isolation[str]("pods", clock, watch)
        self._on_failure = on_failure
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def runs(self) -> bool:
        return bool(self._tasks)

    def keep(self, name: str, loop: Callable[[], Coroutine[object, object, None]]) -> None:
        """Run a loop, and restart it after errors."""
        self.spawn(keep(name, loop, self._clock, self._watch))

    def spawn(self, work: Coroutine[object, object, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._note_end)

    def _note_end(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            if is_at_fault(error):
                # The work on one pod. The pod's next event, or the next order, tries again.
                self._isolation.report(task.get_coro(), error)
                return
            self.failed = error
            self._on_failure()

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
