"""Which ended steps are removed, and when: after a time, and earlier while there is too much."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from odcd.runner.steps.step import Step

KEPT_S = 900.0
"""How long the journal of an ended step is kept for a client that has not read its end."""
MAX_KEPT = 2000
MIN_KEPT_S = 60.0
"""If there are more, the oldest ones are kept for this long. A repeated order to start one of them
must find it."""
MAX_KEPT_BYTES = 1024 * 1024 * 1024
"""If all journals together are larger, the oldest ones of the user with the most are removed."""


class Surplus(NamedTuple):
    steps: list[Step]
    journals: list[Step]
    """Steps of which only the journal is removed."""


def surplus(steps: Iterable[Step], now: float) -> Surplus:
    """Of steps that have ended, and whose end is acknowledged."""
    ended = sorted((s for s in steps if s.acknowledged and not s.live), key=lambda s: s.ended_at)
    count = 0
    for at, step in enumerate(ended):
        age_s = now - step.ended_at
        if not (age_s > KEPT_S or (len(ended) - at > MAX_KEPT and age_s > MIN_KEPT_S)):
            break
        count = at + 1
    return Surplus(ended[:count], _surplus_journals(ended[count:]))


def _surplus_journals(ended: Sequence[Step]) -> list[Step]:
    """ended: the oldest first. The output of one user displaces that user's first."""
    of_users: dict[int, deque[Step]] = {}
    sizes: Counter[int] = Counter()
    for step in ended:
        if step.kept_bytes:
            of_users.setdefault(step.uid, deque()).append(step)
            sizes[step.uid] += step.kept_bytes
    found: list[Step] = []
    while sizes.total() > MAX_KEPT_BYTES:
        uid = max(sizes, key=sizes.__getitem__)
        found.append(of_users[uid].popleft())
        sizes[uid] -= found[-1].kept_bytes
    return found
