"""The time that a replay plans for a job: the user's time limit, its true run time, or a
prediction.

last2 plans with the mean of the user's last two run times known at submit, and never beyond the
user's own limit. It ends no job: if a job exceeds its prediction, its planned limit is raised in
growing steps, up to the user's limit. Source: Tsafrir, Etsion and Feitelson, "Backfilling Using
System-Generated Predictions Rather than User Runtime Estimates", 2007.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Literal

from odcd.simulate.trace import TraceJob

Estimates = Literal["user", "true", "last2"]
CHOICES: tuple[Estimates, ...] = ("user", "true", "last2")

RAISES_S = (60, 300, 900, 1800, 3600, 7200, 18_000, 36_000, 72_000, 180_000, 360_000)
"""How far beyond its prediction a job is planned next, once it exceeds it."""


class Planned:
    """The time limits with which jobs are submitted, updated as jobs end."""

    def __init__(self, kind: Estimates) -> None:
        self._kind = kind
        self._last: defaultdict[str, deque[int]] = defaultdict(lambda: deque(maxlen=2))

    def limit_s(self, job: TraceJob) -> int:
        if self._kind != "last2":
            return job.limit_s
        known = self._last[job.user]
        if not known:
            return job.limit_s
        return max(1, min(job.limit_s, round(sum(known) / len(known))))

    def raised_s(self, job: TraceJob, predicted_s: int, limit_s: int) -> int:
        """The next limit of a job that exceeded limit_s and was first planned with predicted_s."""
        step = bisect_right(RAISES_S, limit_s - predicted_s)
        if step == len(RAISES_S):
            return job.limit_s
        return min(job.limit_s, predicted_s + RAISES_S[step])

    def ended(self, job: TraceJob) -> None:
        if self._kind == "last2":
            self._last[job.user].append(job.run_s)


def with_estimates(kind: Estimates, jobs: Iterable[TraceJob]) -> Iterator[TraceJob]:
    """The jobs with the limits they run under. With true estimates the run time is the limit: no
    job is cut at the user's estimate."""
    for job in jobs:
        yield replace(job, limit_s=job.run_s) if kind == "true" else job
