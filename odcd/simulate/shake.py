"""Shaken replays: the same trace with slightly moved submissions, so that chance shows as an error.

Source: Tsafrir, Ouaknine and Feitelson, "Reducing Performance Evaluation Sensitivity and
Variability by Input Shaking", MASCOTS 2007.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from statistics import fmean, stdev
from typing import Any

from odcd.simulate.trace import Workload

MOVE_S = 600
MAX_RUNS = 1000
FIGURES = (
    "jobs", "mean_wait_s", "median_wait_s", "p95_wait_s", "max_wait_s", "mean_bounded_slowdown",
    "utilization", "makespan_s", "eta", "passes", "pass_ms",
)  # fmt: skip
"""The figures of a replay that vary between runs."""


def shaken(workload: Workload, seed: int) -> Workload:
    """The workload with each job submitted 0 to 10 minutes later, and the first one still at 0.
    One seed always moves a job equally far."""
    random = Random(seed)
    moved = [
        replace(job, submit_s=job.submit_s + random.randint(0, MOVE_S)) for job in workload.jobs
    ]
    moved.sort(key=lambda job: job.submit_s)
    first = moved[0].submit_s if moved else 0
    return replace(
        workload, jobs=tuple(replace(job, submit_s=job.submit_s - first) for job in moved)
    )


def summaries(results: Sequence[dict[str, Any]], seeds: int, policies: int) -> list[dict[str, Any]]:
    """One summary for each trace and policy.

    results: of each run, by trace, then policy, then seed. Each policy is compared with the first
    one of its trace.
    """
    groups = [results[at : at + seeds] for at in range(0, len(results), seeds)]
    return [
        summary(group, groups[number - number % policies]) for number, group in enumerate(groups)
    ]


def summary(runs: Sequence[dict[str, Any]], first: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The object that --json prints for one trace and policy.

    runs: the figures of each run, in the order of their seeds. first: those of the policy that it
    is compared with, for the same seeds. mean and standard_error have the keys of one run; ratio
    has the mean and the standard error of each run's figure divided by the same run's of first.
    """
    kept = ("trace", "cluster", "left_out", "policy")
    own = [{key: run[key] for key in FIGURES} for run in runs]
    others = [{key: run[key] for key in FIGURES} for run in first]
    ratios = [_together(_ratio, one, other) for one, other in zip(own, others, strict=True)]
    return {
        **{key: runs[0][key] for key in kept},
        "shake": len(runs),
        "mean": _together(_mean, *own),
        "standard_error": _together(_standard_error, *own),
        "compared_with": first[0]["policy"],
        "ratio": {
            "mean": _together(_mean, *ratios),
            "standard_error": _together(_standard_error, *ratios),
        },
        "runs": list(runs),
    }


def _together(combine: Callable[..., Any], *values: Any) -> Any:
    """Combine the numbers at equal places of equal nested objects."""
    if isinstance(values[0], dict):
        return {key: _together(combine, *(one[key] for one in values)) for key in values[0]}
    return combine(*values)


def _ratio(one: float | None, other: float | None) -> float | None:
    return one / other if one is not None and other else None


def _mean(*values: float | None) -> float | None:
    known = [value for value in values if value is not None]
    return round(fmean(known), 6) if known else None


def _standard_error(*values: float | None) -> float | None:
    known = [value for value in values if value is not None]
    return round(stdev(known) / math.sqrt(len(known)), 6) if len(known) > 1 else None
