"""Jobs of one submit that wait for others: python -m benchmarks.dependencies [--write].

Each run has a new database, so the planner has no statistics, as at a new site.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable

import psutil

from benchmarks.figures import HEAD, Figure, explained, timed_ms
from benchmarks.planning import served
from benchmarks.results import DEPENDENCIES, RESULTS, git, machine, with_section
from odcd.records.job import JobSpec
from tests.support.builders.jobs import a_cluster, a_job, submit

JOBS = 2_000
RUNS = 3

KINDS: dict[str, Callable[[int, int], JobSpec]] = {
    "singletons of one name": lambda n, target: a_job(dependency="singleton", name="one"),
    "singletons, each with its own name": lambda n, target: a_job(
        dependency="singleton", name=f"name-{n}"
    ),
    "jobs with `afterok` of one job": lambda n, target: a_job(dependency=f"afterok:{target}"),
    "jobs with `after` of one job": lambda n, target: a_job(dependency=f"after:{target}"),
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dependencies", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write them into {RESULTS.name}")
    options = parser.parse_args()
    figures = measure()
    print(HEAD, *(figure.row() for figure in figures), "", *explained(figures), sep="\n")
    if options.write:
        text = RESULTS.read_text("utf-8")
        RESULTS.write_text(with_section(text, DEPENDENCIES, section(figures)))
    return 0


def measure() -> list[Figure]:
    figures: list[Figure] = []
    for kind, make in KINDS.items():
        runs = [first_submit(make) for _ in range(RUNS)]
        figures += [
            Figure(
                f"{JOBS:,} {kind} in one submit", [took for took, _ in runs], "ms", 1000,
                note="writing the rows dominates; checking the dependencies takes a fifth",
            ),
            Figure("the same, CPU time of PostgreSQL", [cpu for _, cpu in runs], "ms"),
        ]  # fmt: skip
    return figures


def cpu_ms(pid: int) -> float:
    """CPU time of a process on this machine so far."""
    spent = psutil.Process(pid).cpu_times()
    return 1000 * (spent.user + spent.system)


def first_submit(make: Callable[[int, int], JobSpec]) -> tuple[float, float]:
    """How long a submit takes on a new database, and its CPU time."""
    with served() as sql:
        a_cluster(sql, h100=2)
        target = submit(sql, a_job())[0].job_id or 0
        jobs = [make(n, target) for n in range(JOBS)]
        answers: list[object] = []
        backend = sql.value("select pg_backend_pid()")
        before = cpu_ms(backend)
        took = timed_ms(lambda: answers.extend(submit(sql, *jobs)))
        assert sql.value("select count(*) from odc.dependency") == JOBS, answers[:1]
        return took, cpu_ms(backend) - before


def section(figures: list[Figure]) -> str:
    lines = [
        DEPENDENCIES,
        "",
        "Written by `python -m benchmarks.dependencies --write`, at commit "
        f"{git('log', '-1', '--format=%h')}, {RUNS} runs each,",
        "each on a new database without table statistics. PostgreSQL and this benchmark share",
        f"the machine: {machine()}.",
        f"Load average at the end: {os.getloadavg()[0]:.1f}.",
        "",
        *(line.rsplit("|", 2)[0] + "|" for line in HEAD.splitlines()),
        *(figure.row().rsplit("|", 2)[0] + "|" for figure in figures),
        "",
        *explained(figures),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
