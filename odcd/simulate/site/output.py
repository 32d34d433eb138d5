"""The output of `odcd simulate` for the replay of a site."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from odcd.simulate.site.compare import Compared

MAX_ROWS = 20
TITLES = {"real": "REALLY", "replayed": "REPLAYED", "changed": "CHANGED"}
WAITS = (("mean", "mean_s"), ("median", "median_s"), ("95th percentile", "p95_s"),
         ("longest", "max_s"))  # fmt: skip
GROUPS = (("USER", "by_user"), ("ACCOUNT", "by_account"), ("SIZE", "by_size"))


def report(found: dict[str, Any]) -> str:
    """The text of a comparison."""
    start = datetime.fromisoformat(found["start"])
    end = start + timedelta(seconds=found["length_s"])
    names = list(found["waits"])
    lines = [
        f"window    {start:%Y-%m-%d %H:%M} to {end:%Y-%m-%d %H:%M} UTC: {found['jobs']:,} jobs "
        f"started on {found['nodes']:,} nodes with {found['gpus']:,} GPUs",
        f"scenario  {found['scenario']}",
        _close(found),
        *_notes(found),
        "",
        *_table(
            ["WAIT", *(TITLES[name] for name in names)],
            [
                [label, *(_span(found["waits"][name][key]) for name in names)]
                for label, key in WAITS
            ],
        ),
    ]
    for title, key in GROUPS:
        rows = [
            [row["name"], f"{row['jobs']:,}", *(_span(row[f"{name}_s"]) for name in names),
             _signed(row["difference_s"])]
            for row in found[key][:MAX_ROWS]
        ]  # fmt: skip
        lines += ["", *_table([title, "JOBS", *(TITLES[name] for name in names), "CHANGE"], rows)]
        if len(found[key]) > MAX_ROWS:
            lines.append(f"and {len(found[key]) - MAX_ROWS} more: use --json")
    return "\n".join(lines)


def _close(found: dict[str, Any]) -> str:
    close = found["closeness"]
    if close["median_s"] is None:
        return "replay    with the site's own settings, none of these jobs started"
    return (
        f"replay    with the site's own settings, starts differ from the real ones by "
        f"{_span(close['median_s'])} (median) and {_span(close['p95_s'])} (95th percentile); "
        f"{100 * close['within_60_s']:.1f} % by at most one minute"
    )


def _notes(found: dict[str, Any]) -> list[str]:
    notes = [
        (found["left_out"]["never_ready"], "jobs never became ready and are left out"),
        (found["left_out"]["unstarted_tasks"], "ranges of array tasks were cancelled unstarted"),
        *((count, f"jobs did not start: {name}") for name, count in found["not_started"].items()),
        *(
            (row["jobs"], f"jobs can run on no node of the scenario: {row['reason']}")
            for row in found["refused"]
        ),
    ]
    lines = [f"note      {count:,} {text}" for count, text in notes if count]
    if any(found["preempted"].values()):
        counts = ", ".join(f"{name} {count:,}" for name, count in found["preempted"].items())
        lines.append(f"note      preempted jobs: {counts}")
    return lines


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The first column to the left, the others to the right."""
    all_rows = [titles, *rows]
    widths = [max(len(row[at]) for row in all_rows) for at in range(len(titles))]
    return [
        "  ".join(
            [row[0].ljust(widths[0])]
            + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        ).rstrip()
        for row in all_rows
    ]


def _span(seconds: float | None) -> str:
    """1-02:03:04, as odcctl prints durations."""
    if seconds is None:
        return "-"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    text = f"{hours}:{minutes:02}:{rest:02}"
    return f"{days}-{text.zfill(8)}" if days else text


def _signed(seconds: float) -> str:
    whole = round(seconds)
    return f"{'+' if whole > 0 else '-' if whole < 0 else ''}{_span(abs(whole))}"


def write_starts(path: Path, rows: Sequence[Compared]) -> None:
    """One line per job; times in seconds since the start of the window."""
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        replays = ["replayed_start", "changed_start"][: len(rows[0].starts_s) if rows else 1]
        lines.writerow(["id", "task", "user", "account", "size", "ready", "real_start", *replays])
        for row in rows:
            lines.writerow(
                [row.job_id, row.number, row.user, row.account, row.size, row.since_s, row.real_s,
                 *row.starts_s]
            )  # fmt: skip
