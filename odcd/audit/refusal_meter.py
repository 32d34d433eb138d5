"""Limit the audit log's lines about failures, so that rejected clients cannot fill its disk."""

from __future__ import annotations

from dataclasses import dataclass

from odcd.clock import Clock

WINDOW_S = 60.0
MAX_LINES = 120
"""Failed requests of one client that are logged within the window."""
MAX_OVERALL = 6_000
KEPT = 10_000
EVERYBODY = ""


@dataclass(slots=True)
class _Window:
    since_s: float
    lines: int = 0
    left_out: int = 0


class RefusalMeter:
    """clients: users by uid, and networks of unknown clients."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._windows: dict[str, _Window] = {}
        self._cleared_s = float("-inf")

    def admit(self, client: str) -> int | None:
        """Return how many refusals of this client were left out before this one; None: do not log
        it."""
        own, everybody = self._window(client), self._window(EVERYBODY)
        if own.lines >= MAX_LINES or everybody.lines >= MAX_OVERALL:
            own.left_out += 1
            return None
        own.lines += 1
        everybody.lines += 1
        left_out, own.left_out = own.left_out, 0
        return left_out

    def _window(self, client: str) -> _Window:
        now_s = self._clock.monotonic()
        found = self._windows.get(client)
        if found is None:
            # Do not clear at every new client: with many of them that would cost more than the
            # line.
            if len(self._windows) >= KEPT and now_s >= self._cleared_s + WINDOW_S / 10:
                self._cleared_s = now_s
                fresh_s = now_s - WINDOW_S
                kept = {name: one for name, one in self._windows.items() if one.since_s > fresh_s}
                self._windows = kept
            if len(self._windows) >= KEPT and client != EVERYBODY:
                return self._window(EVERYBODY)
            found = self._windows[client] = _Window(now_s)
        elif now_s >= found.since_s + WINDOW_S:
            found.since_s, found.lines = now_s, 0
        return found
