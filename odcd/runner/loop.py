"""The runner's single thread: callbacks for ready descriptors and for points in time."""

from __future__ import annotations

import heapq
import itertools
import selectors
import time
from collections.abc import Callable
from typing import Any

READ = selectors.EVENT_READ
WRITE = selectors.EVENT_WRITE
LONGEST_WAIT_S = 2.0
"""Times are wall-clock times: a changed clock is noticed within this time."""


class Loop:
    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._moments: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()

    def watch(self, channel: Any, callback: Callable[[int], None], events: int = READ) -> None:
        """channel: a descriptor, or an object with fileno(). callback: receives the events."""
        self._selector.register(channel, events, callback)

    def change(self, channel: Any, callback: Callable[[int], None], events: int) -> None:
        self._selector.modify(channel, events, callback)

    def forget(self, channel: Any) -> None:
        self._selector.unregister(channel)

    def at(self, moment: float, callback: Callable[[], None]) -> None:
        heapq.heappush(self._moments, (moment, next(self._order), callback))

    def turn(self, *, wait: bool) -> None:
        """Run everything that is due once. If wait is true, sleep until something is due."""
        timeout = 0.0
        if wait:
            timeout = LONGEST_WAIT_S
            if self._moments:
                timeout = min(timeout, max(0.0, self._moments[0][0] - time.time()))
        for key, events in self._selector.select(timeout):
            key.data(events)
        now = time.time()
        while self._moments and self._moments[0][0] <= now:
            heapq.heappop(self._moments)[2]()
