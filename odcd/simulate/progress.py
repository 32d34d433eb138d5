"""A progress bar with the time left, on a terminal only."""

from __future__ import annotations

from types import TracebackType
from typing import Self, TextIO

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from odcd.clock import SystemClock

EVERY_S = 0.2


class ReplayProgress:
    """The bar of one replay. It is entered and left in the process that does the work, which for
    root is a child of another account: a bar that is open when a process ends hides the cursor."""

    def __init__(self, title: str, stream: TextIO) -> None:
        console = Console(file=stream)
        self._bar = Progress(
            TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(),
            TimeRemainingColumn(compact=True), TextColumn("left"),
            console=console, transient=True, auto_refresh=False, disable=not console.is_interactive,
            get_time=SystemClock().monotonic,
        )  # fmt: skip
        self._task = self._bar.add_task(escape(title), total=None)
        self._clock = SystemClock()
        self._next = 0.0
        # Rich imports some modules when it first draws. The account that does the work may not be
        # able to read them.
        console.render_lines(self._bar.get_renderable())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._bar.stop()

    def show(self, done: int, total: int) -> None:
        """Show the progress: done of total steps. The first call draws the bar."""
        now = self._clock.monotonic()
        if self._bar.disable or now < self._next or not done:
            return
        self._next = now + EVERY_S
        self._bar.start()
        self._bar.update(self._task, completed=done, total=total, refresh=True)
