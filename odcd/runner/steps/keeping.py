"""Which ended steps are removed, and when: after a time, and earlier while there is too much."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from odcd.runner.steps.step import Step

KEPT_S = 900.0
"""How long the journal of an ended step is kept for a client that has not read its end."""
MAX_KEPT = 2000
MIN_KEPT_S = 60.0
"""If there are more, the oldest ones are kept for this long. A repeated order to start one of them
must find it."""
MAX_KEPT_BYTES = 1024 * 1024 * 1024
"""If all journals together are larger, the oldest ones are removed at once."""


class Surplus(NamedTuple):
    steps: list[Step]
    journals: list[Step]
    """Steps of which only the journal is removed."""


def surplus(steps: Iterable[Step], now: float) -> Surplus:
    """Of steps that have ended, and whose end is acknowledged."""
    ended = sorted((s for s in steps if s.acknowledged and not s.live), key=lambda s: s.ended_at)
    kept_bytes = sum(step.kept_bytes for step in ended)
    found = Surplus([], [])
    for at, step in enumerate(ended):
        age_s = now - step.ended_at
        if age_s > KEPT_S or (len(ended) - at > MAX_KEPT and age_s > MIN_KEPT_S):
            found.steps.append(step)
        elif kept_bytes > MAX_KEPT_BYTES:
            found.journals.append(step)
        else:
            break
        kept_bytes -= step.kept_bytes
    return found
