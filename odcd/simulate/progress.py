"""A progress bar with the time left, on a terminal only."""

from __future__ import annotations

from typing import TextIO

from odcd.clock import SystemClock

WIDTH = 30
EVERY_S = 0.2


class Progress:
    def __init__(self, title: str, stream: TextIO) -> None:
        self._title = title
        self._stream = stream if stream.isatty() else None
        self._clock = SystemClock()
        self._begun: float | None = None
        self._next = 0.0

    def show(self, done: int, total: int) -> None:
        """Show the progress: done of total steps."""
        if self._stream is None:
            return
        now = self._clock.monotonic()
        if self._begun is None:
            self._begun = now
        if now < self._next or not done:
            return
        self._next = now + EVERY_S
        share = done / total
        left_s = (now - self._begun) * (1 - share) / share
        bar = "#" * round(share * WIDTH)
        self._stream.write(
            f"\r{self._title}  [{bar:<{WIDTH}}] {share:4.0%}  {_clock_of(left_s)} left\x1b[K"
        )
        self._stream.flush()

    def clear(self) -> None:
        if self._stream is not None:
            self._stream.write("\r\x1b[K")
            self._stream.flush()


def _clock_of(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
