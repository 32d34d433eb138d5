"""Decide which failed requests are sent again, and after what pause."""

from __future__ import annotations

import time
from typing import Literal

from odc.errors import of_failure
from odcctl import exits
from odcctl.http.wire import LostAnswer

FIRST_PAUSE_S, LAST_PAUSE_S = 0.1, 2.0
BUSY, TOO_MANY = 503, 429

Repeats = Literal["safe", "once"]
"""safe: sending a request twice has the effect of sending it once: it reads, has an idempotency
key, or sets a state. once: such a request is sent again only if the daemon did nothing."""

Trouble = LostAnswer | exits.Failure


class Retries:
    """Of one request. for_s: how long failures are answered by new tries. reached: whether the
    daemon was reached before: a daemon that never answered is reported at once."""

    def __init__(self, repeats: Repeats, for_s: float, *, reached: bool) -> None:
        self._repeats = repeats
        self._for_s = for_s
        self._reached = reached
        self._since: float | None = None
        self._pause_s = FIRST_PAUSE_S

    def succeeded(self) -> None:
        """The daemon answered: a later failure is a new one."""
        self._reached, self._since = True, None
        self._pause_s = FIRST_PAUSE_S

    def pause_after(self, error: Trouble) -> float:
        """Seconds until the next try. Raises the error that ends the request."""
        now = time.monotonic()
        if self._since is None:
            self._since = now
        pause_s, self._pause_s = self._pause_s, min(2 * self._pause_s, LAST_PAUSE_S)
        if isinstance(error, exits.Refused) and error.retry_after_s is not None:
            pause_s = max(pause_s, error.retry_after_s)
        if not self._may_repeat(error) or now + pause_s - self._since > self._for_s:
            raise of_failure(error) from error
        if not isinstance(error, exits.Unreachable):
            self._reached = True
        return pause_s

    def _may_repeat(self, error: Trouble) -> bool:
        if isinstance(error, LostAnswer):
            return self._repeats == "safe"
        if isinstance(error, exits.Refused):
            if error.status == TOO_MANY:
                return True  # The daemon refused the request before it did anything.
            return error.status == BUSY and self._repeats == "safe"
        # Nothing was sent.
        return isinstance(error, exits.Unreachable) and self._reached
