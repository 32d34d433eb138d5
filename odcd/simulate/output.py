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
    """One row per figure, one column per trace and policy."""
    return _columns(
        [
            [
                f"{result['trace']}, {result['policy']}",
                *(_cell(_figure(result, key), unit) for _, key, unit in ROWS),
            ]
            for result in results
        ]
    )


def shaken_table(results: Sequence[dict[str, Any]]) -> str:
    """One row per figure. One column per trace and policy has the mean and the standard error; for
    all but the first policy of a trace, another has the ratio to the first."""
    columns: list[list[str]] = []
    for at, result in enumerate(results):
        mean, error = result["mean"], result["standard_error"]
        columns.append(
            [
                f"{result['trace']}, {result['policy']}",
                *(_with_error(mean, error, key, unit) for _, key, unit in ROWS),
            ]
        )
        if at and result["compared_with"] != result["policy"]:
            mean, error = result["ratio"]["mean"], result["ratio"]["standard_error"]
            columns.append(
                [
                    f"{result['policy']} / {result['compared_with']}",
                    *(_with_error(mean, error, key, "ratio") for _, key, _ in ROWS),
                ]
            )
    note = (
        f"Mean and standard error of {results[0]['shake']} runs, submissions moved by up to 10 min"
    )
    return f"{_columns(columns)}\n{note}"


def _columns(columns: Sequence[Sequence[str]]) -> str:
    """The labels, and beside them the columns; the first cell of each is its title."""
    names = ["", *(label for label, _, _ in ROWS)]
    widths = [max(map(len, column)) for column in columns]
    first = max(map(len, names))
    return "\n".join(
        "  ".join(
            [name.ljust(first), *(c[at].rjust(w) for c, w in zip(columns, widths, strict=True))]
        ).rstrip()
        for at, name in enumerate(names)
    )


def _figure(result: dict[str, Any], key: str) -> Any:
    value: Any = result
    for part in key.split("."):
        value = value[part]
    return value


def _cell(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    if unit == "%":
        return f"{100 * value:.1f} %"
    if unit == "s":
        return f"{value:,.0f} s"
    text = f"{value:,}" if isinstance(value, int) else f"{value:,.2f}"
    return f"{text} {unit}".rstrip()


def _with_error(mean: dict[str, Any], error: dict[str, Any], key: str, unit: str) -> str:
    """The mean and its standard error, with two digits of the error."""
    value, spread = _figure(mean, key), _figure(error, key)
    if value is None:
        return "-"
    scale = 100 if unit == "%" else 1
    digits = 3 if unit == "ratio" else 2 if unit in ("", "ms") else 1 if unit == "%" else 0
    if key in ("jobs", "passes") and unit != "ratio":
        digits = 0
    text = f"{value * scale:,.{digits}f}"
    if spread is not None:
        text += f" ± {spread * scale:,.{digits}f}"
    return text if unit == "ratio" else f"{text} {unit}".rstrip()


def write_jobs(path: Path, jobs: Sequence[Outcome]) -> None:
    """One line per job, in order of submission; times in seconds since the first."""
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(("id", "submit", "start", "end", "nodes"))
        for job in jobs:
            lines.writerow((job.job_id, job.submit_s, job.start_s, job.end_s, " ".join(job.nodes)))
