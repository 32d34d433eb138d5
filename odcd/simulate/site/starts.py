"""The starts of a replay, and how long each job runs in it."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import median

from odcd.simulate.site.records import UNLIMITED_S, Site, SiteJob, Task

UNKNOWN_RUN_S = 3600
"""The run time of a job without a limit that never ran."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The first start of a job or task. start_s: None if it did not start."""

    job_id: int
    number: int | None
    start_s: int | None
    nodes: str = ""
    preempted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """refused: the reason, by shape, why jobs of this shape can never run."""

    starts: tuple[Start, ...]
    refused: dict[int, str]
    pass_ms: tuple[float, ...]


@dataclass(slots=True)
class Live:
    """A job or task that has been submitted, or that has started."""

    job: SiteJob
    task: Task
    span: int = 0
    """Which of its real attempts runs or is next."""
    attempt: int | None = None
    first: Start | None = None
    preempted: int = 0


def compared(task: Task) -> bool:
    """Whether a task's real start lies in the window."""
    return task.first_start_s is not None and task.first_start_s >= 0


def used_share(site: Site) -> float:
    """The share of their time limits that jobs of the window used: the median; 1 if none ended."""
    shares = [
        (span.end_s - span.start_s) / job.limit_s
        for job in site.jobs
        for task in job.tasks
        for span in task.spans
        if span.end_s is not None and job.limit_s != UNLIMITED_S
    ]
    return min(1.0, median(shares)) if shares else 1.0


def run_time_s(
    job: SiteJob, task: Task, span: int, now_s: int, site_length_s: int, share: float
) -> int:
    """How long an attempt runs that starts now.

    As long as it really ran. If no one knows because it still runs or waits at the end of the
    window: the given share of its time limit, but at least as long as it ran until then. If its
    user cancelled it while it waited: at most until then.
    """
    limit_s = max([job.limit_s, *(one.limit_s for one in task.extensions)])
    guess_s = UNKNOWN_RUN_S if limit_s == UNLIMITED_S else round(share * limit_s)
    if not task.spans:
        left_s = guess_s if task.cancelled_s is None else task.cancelled_s - now_s
        return max(1, min(guess_s, left_s))
    real = task.spans[min(span, len(task.spans) - 1)]
    if real.end_s is not None:
        return max(1, real.end_s - real.start_s)
    return max(1, guess_s, site_length_s - real.start_s)
