"""What a replay plans a job with: the user's time limit, its true run time, or a prediction.

last2 plans with the mean of the user's last two run times, as known when the job is submitted, and
never beyond the user's own limit. Nobody is ended by it: a job that outlives its prediction has its
planned limit raised, in growing steps, up to the user's. Source: Tsafrir, Etsion and Feitelson,
"Backfilling Using System-Generated Predictions Rather than User Runtime Estimates", 2007.
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
"""How far beyond the prediction a job that outlives it is planned next."""


class Planned:
    """The time limits that jobs are submitted with, learnt as they end."""

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
        """The next limit of a job that has outlived limit_s, which began as predicted_s."""
        step = bisect_right(RAISES_S, limit_s - predicted_s)
        if step == len(RAISES_S):
            return job.limit_s
        return min(job.limit_s, predicted_s + RAISES_S[step])

    def ended(self, job: TraceJob) -> None:
        if self._kind == "last2":
            self._last[job.user].append(job.run_s)


def with_estimates(kind: Estimates, jobs: Iterable[TraceJob]) -> Iterator[TraceJob]:
    """The jobs with the limits they run under. With true ones the run time is the limit: nothing
    is cut at what the user thought."""
    for job in jobs:
        yield replace(job, limit_s=job.run_s) if kind == "true" else job
