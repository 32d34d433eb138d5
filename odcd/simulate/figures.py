"""The results of a replay as numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, median
from typing import Any

from odcd.simulate.cluster import Cluster
from odcd.simulate.outcomes import Outcome, Replayed
from odcd.simulate.trace import Workload

TAU_S = 10
"""For the bounded slowdown: keeps very short jobs from dominating."""


def bounded_slowdown(wait_s: float, run_s: float) -> float:
    """How much longer a job took than it ran: max(1, (wait + run) / max(run, 10)).

    Source: Feitelson and Rudolph, "Metrics and Benchmarking for Parallel Job Scheduling", 1998.
    """
    return max(1.0, (wait_s + run_s) / max(run_s, TAU_S))


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that this share of all values does not exceed; values must not be
    empty."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def figures(done: Replayed, workload: Workload, cluster: Cluster) -> dict[str, Any]:
    """The object that --json prints; figures without jobs are null."""
    jobs = done.jobs
    waits = [job.wait_s for job in jobs]
    return {
        "trace": workload.name,
        "cluster": str(cluster),
        "left_out": {"too_wide": workload.too_wide, "empty": workload.empty},
        "policy": done.policy,
        "jobs": len(jobs),
        "mean_wait_s": _rounded(fmean(waits)) if jobs else None,
        "median_wait_s": _rounded(median(waits)) if jobs else None,
        "p95_wait_s": percentile(waits, 0.95) if jobs else None,
        "max_wait_s": max(waits) if jobs else None,
        "mean_bounded_slowdown": (
            round(fmean(bounded_slowdown(job.wait_s, job.run_s) for job in jobs), 4)
            if jobs
            else None
        ),
        "utilization": _utilization(jobs, cluster) if jobs else None,
        "makespan_s": max(job.end_s for job in jobs) if jobs else None,
        "eta": _eta(jobs),
        "passes": len(done.pass_ms),
        "pass_ms": {
            "p50": _of(done.pass_ms, 0.5),
            "p99": _of(done.pass_ms, 0.99),
            "max": _of(done.pass_ms, 1.0),
        },
    }


def _eta(jobs: Sequence[Outcome]) -> dict[str, float | None]:
    """The accuracy of the starts predicted at submit, over the jobs that waited."""
    waited = [
        (job.start_s, *job.predicted)
        for job in jobs
        if job.wait_s > 0 and job.predicted is not None
    ]
    if not waited:
        names = ("mae_s", "median_ae_s", "bias_s", "coverage_p10_p90", "mean_width_s")
        return dict.fromkeys(names)
    errors = [p50 - start for start, _, p50, _ in waited]
    return {
        "mae_s": _rounded(fmean(map(abs, errors))),
        "median_ae_s": _rounded(median(map(abs, errors))),
        "bias_s": _rounded(fmean(errors)),
        "coverage_p10_p90": round(fmean(p10 <= start <= p90 for start, p10, _, p90 in waited), 4),
        "mean_width_s": _rounded(fmean(p90 - p10 for _, p10, _, p90 in waited)),
    }


def _utilization(jobs: Sequence[Outcome], cluster: Cluster) -> float:
    """The share of GPU-seconds that were allocated, from the first submission to the last end."""
    held = sum(job.gpus * job.run_s for job in jobs)
    return round(held / (cluster.gpus * max(job.end_s for job in jobs)), 6)


def _of(values: Sequence[float], share: float) -> float | None:
    return _rounded(percentile(values, share)) if values else None


def _rounded(value: float) -> float:
    return round(value, 3)
