"""Limit the time that scrapes take from the event loop, because anyone may scrape."""

from __future__ import annotations

from collections.abc import Callable

from odcd.clock import Clock
from odcd.metrics.sample import MAX_FORMATS

SHARE = 0.05
"""The share of the time that rendering may take. The rest of the scrapes get the last answer."""
SAVED_S = 1.0
"""Unused time is saved up to this, so a Prometheus always gets current metrics."""

Answer = tuple[bytes, str]
"""The metrics and their media type."""


class Scrapes:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._left_s = SAVED_S
        self._at_s = clock.monotonic()
        self._answers: dict[str, Answer] = {}
        """The last one of each media type."""

    def answer(self, media_type: str, render: Callable[[], Answer]) -> Answer:
        """The answer of render(), or its last one for this type if the time is used up."""
        now_s = self._clock.monotonic()
        self._left_s = min(SAVED_S, self._left_s + SHARE * (now_s - self._at_s))
        self._at_s = now_s
        if self._left_s <= 0 and media_type in self._answers:
            return self._answers[media_type]
        found = render()
        self._left_s -= self._clock.monotonic() - now_s
        if media_type in self._answers or len(self._answers) < MAX_FORMATS:
            self._answers[media_type] = found
        return found
