"""The output of `odcd simulate` for a replay."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from odcd.simulate.outcomes import Outcome

ROWS = (
    ("jobs", "jobs", ""),
    ("mean wait", "mean_wait_s", "s"),
    ("median wait", "median_wait_s", "s"),
    ("95th percentile wait", "p95_wait_s", "s"),
    ("longest wait", "max_wait_s", "s"),
    ("mean bounded slowdown", "mean_bounded_slowdown", ""),
    ("utilization", "utilization", "%"),
    ("makespan", "makespan_s", "s"),
    ("start predicted, mean absolute error", "eta.mae_s", "s"),
    ("  median absolute error", "eta.median_ae_s", "s"),
    ("  bias, predicted minus real", "eta.bias_s", "s"),
    ("  real starts between p10 and p90", "eta.coverage_p10_p90", "%"),
    ("  mean width p10 to p90", "eta.mean_width_s", "s"),
    ("passes", "passes", ""),
    ("pass, median", "pass_ms.p50", "ms"),
    ("pass, 99th percentile", "pass_ms.p99", "ms"),
    ("pass, longest", "pass_ms.max", "ms"),
)


def table(results: Sequence[dict[str, Any]]) -> str:
    """One row per figure, one column per trace."""
    columns = [
        [
            f"{result['trace']}, {result['policy']}",
            *(_cell(result, key, unit) for _, key, unit in ROWS),
        ]
        for result in results
    ]
    names = ["", *(label for label, _, _ in ROWS)]
    widths = [max(map(len, column)) for column in columns]
    first = max(map(len, names))
    return "\n".join(
        "  ".join(
            [name.ljust(first), *(c[at].rjust(w) for c, w in zip(columns, widths, strict=True))]
        ).rstrip()
        for at, name in enumerate(names)
    )


def _cell(result: dict[str, Any], key: str, unit: str) -> str:
    value: Any = result
    for part in key.split("."):
        value = value[part]
    if value is None:
        return "-"
    if unit == "%":
        return f"{100 * value:.1f} %"
    if unit == "s":
        return f"{value:,.0f} s"
    text = f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
    return f"{text} {unit}".rstrip()


def write_jobs(path: Path, jobs: Sequence[Outcome]) -> None:
    """One line per job, in order of submission; times in seconds since the first."""
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(("id", "submit", "start", "end", "nodes"))
        for job in jobs:
            lines.writerow((job.job_id, job.submit_s, job.start_s, job.end_s, " ".join(job.nodes)))
