"""The events in the replay of a site, in order of time."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from enum import IntEnum

from odcd.simulate.site.records import SiteJob, Task


class Kind(IntEnum):
    """In this order within a second."""

    END = 0
    VICTIM = 1
    EXTEND = 2
    CANCEL = 3
    NODE = 4
    BOOKING = 5
    SUBMIT = 6
    WAKE = 7
    """Time alone may let a job start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A job, or the tasks of an array that are submitted together.

    id: of the job in the replay. pinned_s: it ran when the window began; it starts then, on its own
    nodes.
    """

    id: int
    job: SiteJob
    tasks: tuple[Task, ...]
    pinned_s: int | None = None

    @property
    def is_array(self) -> bool:
        return self.pinned_s is None and any(task.number is not None for task in self.tasks)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    kind: Kind
    job_id: int = 0
    attempt: int = 0
    limit_s: int = 0
    """The new time limit of an extension."""
    position: int = 0
    """Of the submission, node change or booking in its list."""


class Events:
    """A queue of events by second, then kind, then the order in which they were added."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, int, Event]] = []
        self._added = 0
        self._wakes: set[int] = set()

    def add(self, at_s: int, event: Event) -> None:
        if event.kind is Kind.WAKE:
            if at_s in self._wakes:
                return
            self._wakes.add(at_s)
        self._added += 1
        heapq.heappush(self._heap, (at_s, event.kind, self._added, event))

    def next_moment(self) -> tuple[int, list[Event]] | None:
        """The next second at which anything happens, and its events in order."""
        if not self._heap:
            return None
        now_s = self._heap[0][0]
        events: list[Event] = []
        while self._heap and self._heap[0][0] == now_s:
            events.append(heapq.heappop(self._heap)[3])
        self._wakes.discard(now_s)
        return now_s, events
