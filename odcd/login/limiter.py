"""How many logins an address may try in vain."""

from __future__ import annotations

import ipaddress
from collections import deque

from odcd.clock import Clock
from odcd.errors import TooManyLogins

WINDOW_S = 60.0
MOST = 30
KEPT = 10_000


class Limiter:
    """So that guessing fills neither the audit log nor AWS's ear. An IPv6 network of 64 bits, which
    one person has, counts as one address."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._refused: dict[str, deque[float]] = {}

    def check(self, address: str) -> None:
        """Raises TooManyLogins."""
        if len(self._of(address)) >= MOST:
            raise TooManyLogins(
                f"{MOST} logins from this address were refused within a minute",
                "Wait a minute; then find out with one what is wrong.",
            )

    def note(self, address: str) -> None:
        if len(self._refused) >= KEPT:
            self._refused.clear()
        self._refused.setdefault(_network(address), deque(maxlen=MOST)).append(
            self._clock.monotonic()
        )

    def _of(self, address: str) -> deque[float]:
        times = self._refused.get(_network(address), deque[float]())
        while times and times[0] <= self._clock.monotonic() - WINDOW_S:
            times.popleft()
        return times


def _network(address: str) -> str:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    return str(found) if found.version == 4 else str(ipaddress.ip_network((found, 64), False))
