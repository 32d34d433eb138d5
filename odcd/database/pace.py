"""How much of the database's time the users of requests take: which statements are slow or long.

A statement is slow if the last one of its user at its endpoint took more than SLOW_S, and long if
that took more than LONG_S. All statements of a user who takes much time in all are slow, however
quick each one is.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeVar

SLOW_S = 0.25
LONG_S = 4.0
SLOW_FOR_S = 600.0
"""For so long after a slow statement, unless a later one is quick."""
BUSY_SHARE = 0.5
"""The part of one connection's time that one user's statements may take before they are slow."""
BUSY_S = 5.0
"""How much more a user may take at once: seconds."""
MAX_OWED_S = 60.0
"""The highest count, so that a user is never slow for longer than it takes to decrease."""
MAX_KNOWN = 10_000

K = TypeVar("K")
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Asker:
    """known: the user of an identified request; otherwise a client, whose statements wait without a
    limit on their number: its connections are limited."""

    user: str
    endpoint: str
    known: bool = True
    operator: bool = False


class Speed(IntEnum):
    QUICK = 0
    SLOW = 1
    LONG = 2


def half_of_cpus() -> int:
    """Passes, ends and quick requests have the other half of this machine's CPUs."""
    return max(1, len(os.sched_getaffinity(0)) // 2)


class Pace:
    """The speed of each user's statements at each endpoint. Another user's statements at the same
    endpoint may be quick, and must not wait for the slow ones."""

    def __init__(self) -> None:
        self._running: dict[str, list[tuple[Asker, float]]] = {}
        """By user, when they began."""
        self._last: OrderedDict[Asker, tuple[float, Speed]] = OrderedDict()
        """When the last statement ended, if it was not quick, and how slow it was."""
        self._owed: OrderedDict[str, tuple[float, float]] = OrderedDict()
        """By user, the seconds taken beyond their share, and the time for which they were counted.
        """

    def speed(self, asker: Asker, now_s: float) -> Speed:
        running = self._running.get(asker.user, ())
        ours = max((now_s - at for one, at in running if one == asker), default=0.0)
        ended_s, last = self._last.get(asker, (float("-inf"), Speed.QUICK))
        found = max(_speed(ours), last if now_s - ended_s < SLOW_FOR_S else Speed.QUICK)
        if found is Speed.QUICK and self._is_busy(asker, now_s):
            found = Speed.SLOW
        # A user has one long statement at a time, at whatever endpoint.
        if found is Speed.SLOW and any(now_s - at > LONG_S for _, at in running):
            return Speed.LONG
        return found

    def _is_busy(self, asker: Asker, now_s: float) -> bool:
        """Operators have no limits, and a client may be a proxy with many users."""
        if asker.operator or not asker.known:
            return False
        taking_s = sum(now_s - at for _, at in self._running.get(asker.user, ()))
        return self._owes(asker.user, now_s) + taking_s > BUSY_S

    def _owes(self, user: str, now_s: float) -> float:
        owed_s, at_s = self._owed.get(user, (0.0, now_s))
        return max(0.0, owed_s - (now_s - at_s) * BUSY_SHARE)

    def begin(self, asker: Asker, now_s: float) -> None:
        self._running.setdefault(asker.user, []).append((asker, now_s))

    def end(self, asker: Asker, begun_s: float, now_s: float) -> None:
        running = self._running[asker.user]
        running.remove((asker, begun_s))
        if not running:
            del self._running[asker.user]
        took_s = now_s - begun_s
        owed_s = min(MAX_OWED_S, self._owes(asker.user, now_s) + took_s)
        _remember(self._owed, asker.user, (owed_s, now_s))
        if _speed(took_s) is Speed.QUICK:
            self._last.pop(asker, None)
        else:
            _remember(self._last, asker, (now_s, _speed(took_s)))


def _speed(took_s: float) -> Speed:
    if took_s > LONG_S:
        return Speed.LONG
    return Speed.SLOW if took_s > SLOW_S else Speed.QUICK


def _remember(known: OrderedDict[K, V], key: K, value: V) -> None:
    known[key] = value
    known.move_to_end(key)
    if len(known) > MAX_KNOWN:
        known.popitem(last=False)
