"""Measure the figures with targets: python -m benchmarks [--only NAME]... [--write]."""

from __future__ import annotations

import argparse
import platform
import sys
from collections.abc import Callable
from dataclasses import replace
from importlib.metadata import version

from benchmarks import large, looking, planning, policies, runner_alone, running, slurm, submitting
from benchmarks.figures import HEAD, Figure, explained
from benchmarks.results import RESULTS, git, kept_sections, machine
from benchmarks.slurm_server import NotInstalled
from odcd.home.postgres_files import INSTALLS

FIGURES: dict[str, Callable[[int], list[Figure]]] = {
    "submit": submitting.submits,
    "many": submitting.requests_of_many,
    "latency": running.first_lines,
    "command": running.first_lines_by_command,
    "true": running.trues,
    "runner": runner_alone.trues,
    "cancel": submitting.cancels,
    "plan": planning.passes,
    "policies": policies.policies,
    "large": large.large,
    "look": looking.commands,
    "memory": looking.memory,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", action="append", choices=FIGURES, metavar="NAME",
                        help=f"one of: {', '.join(FIGURES)}; may be repeated")  # fmt: skip
    parser.add_argument(
        "--runs", type=int, default=5, help="how often each is repeated; the median counts"
    )
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    parser.add_argument("--date", help="the date to write; the last commit's when not given")
    options = parser.parse_args()
    if options.write and options.only:
        parser.error("--write writes all figures; leave --only out")
    figures: list[Figure] = []
    cells: dict[str, str] = {}
    try:
        if not options.only:
            cells = slurm.measure(options.runs)
    except NotInstalled as reason:
        print(f"Slurm is not measured: {reason}.", flush=True)
    print(HEAD, flush=True)
    for name in options.only or FIGURES:
        for measured in FIGURES[name](options.runs):
            figure = replace(measured, slurm=cells.get(measured.slurm, ""))
            figures.append(figure)
            print(figure.row(), flush=True)
    print("", *explained(figures), sep="\n")
    if options.write:
        kept = kept_sections(RESULTS.read_text("utf-8"))
        new = report(figures, options.runs, options.date)
        RESULTS.write_text("\n".join([new, *kept]))
    return 0


def report(figures: list[Figure], runs: int, date: str | None) -> str:
    commit, day = git("log", "-1", "--format=%h"), git("log", "-1", "--format=%cs")
    lines = [
        "# Measured",
        "",
        'Written by `make bench`; do not edit. The median of the runs counts; "times better" is',
        "how far the figure is on the good side of the target. One more run warms up and is not "
        "counted.",
        "Clients, daemon, PostgreSQL, runner and jobs share the machine. Slurm was measured by",
        "`benchmarks/slurm.py` in the same run; it keeps its state in a file and no accounting.",
        "",
        f"- Command: `make bench`, which is `python -m benchmarks --write`; {runs} runs.",
        f"- Version: odc {version('odc')}, commit {commit or 'unknown'}, {date or day}.",
        f"- Machine: {machine()}.",
        f"- Software: {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}, "
        f"asyncpg {version('asyncpg')}, uvloop {version('uvloop')}, "
        f"PostgreSQL {max(INSTALLS)} embedded, fsync and synchronous_commit on.",
        "",
        HEAD,
        *(figure.row() for figure in figures),
        "",
        "## What dominates",
        "",
        *explained(figures),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
