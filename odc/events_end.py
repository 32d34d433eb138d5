"""Where the events of a job that is followed end."""

from __future__ import annotations

import time

from odc import models

SETTLE_S = 5.0
"""How long after the end of a job its last events are waited for."""
READ_AGAIN_S = 0.1


class EventsEnd:
    """Whether a followed job has ended, and all of its events have been read. An event becomes
    final, and is sent, some time after the change."""

    def __init__(self, selector: int | str | None, after: int | None, *, follow: bool) -> None:
        self.waits = selector is not None and follow
        self.is_over = False
        self._complete = after is not None
        self._missing: set[int] = set()
        self._seen: set[int] = set()
        self._until = 0.0

    def take(self, event: models.Event) -> bool:
        """Whether to ask for the state of the job."""
        if event.kind != "ended" or event.job_id is None:
            return False
        self._seen.add(event.job_id)
        return self.waits and not self.is_over

    def found(self, state: models.Ended) -> None:
        if state.ended and not self.is_over:
            self.is_over, self._until = True, time.monotonic() + SETTLE_S
            self._missing = set() if self._complete else {one.id for one in state.jobs}

    @property
    def is_complete(self) -> bool:
        """After a read to the newest event."""
        return self._missing <= self._seen or time.monotonic() > self._until
