"""How many lines the audit log has of what fails: whoever is refused must not fill its disk."""

from __future__ import annotations

from dataclasses import dataclass

from odcd.clock import Clock

WINDOW_S = 60.0
MOST = 120
"""Failed requests of one client within the window that have a line each."""
MOST_OF_ALL = 6_000
KEPT = 10_000
EVERYBODY = ""


@dataclass(slots=True)
class _Window:
    since_s: float
    lines: int = 0
    left_out: int = 0


class RefusalMeter:
    """clients: users by uid, networks of strangers."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._windows: dict[str, _Window] = {}
        self._cleared_s = float("-inf")

    def admit(self, client: str) -> int | None:
        """May this refusal have a line? How many of that client had none before it; None: no."""
        own, everybody = self._window(client), self._window(EVERYBODY)
        if own.lines >= MOST or everybody.lines >= MOST_OF_ALL:
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
            # Not for each of many strangers: that would cost more than the line.
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
