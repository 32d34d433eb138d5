"""The cost of history: the same work on an empty database and on one with millions of ended jobs.

python -m benchmarks.history [--jobs N] [--runs N] [--home DIR] [--write]. SQL writes the jobs, a
million per day. The locks of a pass are counted on the partitions of 365 such days.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import statistics
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from benchmarks.figures import HEAD, Figure, explained, timed_ms
from benchmarks.planning import NOW
from benchmarks.results import HISTORY, RESULTS, git, machine, with_section
from odcd.clock import SystemClock
from odcd.database import schema
from odcd.history.partitions import finish_indexes
from odcd.home.postgres import EmbeddedPostgres
from odcd.records.job import Identity
from tests.support.builders.jobs import Queue
from tests.support.harness.database import Sql, admit_root, remove_home

DAY = 1_000_000
CHUNK = 100_000
EVENTS_PER_JOB = 3
BATCH = 100
LIST = (
    "select jobs from odc.list_jobs($1::jsonb, true, null, 50, '{id,name,user,partition,state,"
    "exit_code,started_at,ended_at,node_names,gpus_per_node,node_count,reason}', $2)"
)
ENDED = (
    '"state": ["COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL", "OUT_OF_MEMORY", '
    '"PREEMPTED", "DEADLINE", "BOOT_FAIL"]'
)


@contextmanager
def database(kept: Path | None = None) -> Generator[Sql]:
    """A separate server on disk: the history may be larger than memory. kept: its home, which is
    kept for the next run."""
    home = kept or Path(tempfile.mkdtemp(prefix="odc-bench-", dir="/tmp"))
    home.mkdir(exist_ok=True)
    if os.geteuid() == 0:
        home.chmod(0o755)
    postgres = EmbeddedPostgres(home, int(os.environ.get("ODC_TEST_PG", "18")))
    new = not postgres.data.exists()
    try:
        postgres.start()
        admit_root(postgres)
        asyncio.run(schema.install(postgres.dsn, SystemClock()))
        asyncio.run(finish_indexes(postgres.dsn))
        with Sql(postgres.dsn) as sql:
            folder = Path(__file__).parent
            sql.execute((folder / "queue.sql").read_text())
            sql.execute((folder / "history.sql").read_text())
            if new:
                sql.execute("select bench.make_nodes(1000, $1)", NOW)
            yield sql
    finally:
        if kept:
            postgres.stop()
        else:
            remove_home(home)


def reserve_ids(sql: Sql, days: int) -> None:
    """Use up the ids of this many days, creating partitions as in normal operation."""
    for day in range(1, days + 1):
        sql.execute("select setval('odc.job_id_seq', $1)", day * DAY)
        sql.execute("select setval('odc.event_id_seq', $1)", day * DAY * EVENTS_PER_JOB)
        sql.execute("select odc.make_partitions()")


def fill(sql: Sql, jobs: int) -> float:
    """Write this many ended jobs; returns the bytes that each takes."""
    sql.execute("set synchronous_commit = off")
    shape = sql.value("select bench.shape(1, 8)")
    begin = NOW - timedelta(days=jobs / DAY + 1)
    there: int = sql.value("select coalesce(max(id), 0) from odc.job where user_name like 'user%'")
    if there:
        sql.execute("select setval('odc.job_id_seq', (select max(id) from odc.job))")
    for first in range(there + 1, jobs + 1, CHUNK):
        count = min(CHUNK, jobs - first + 1)
        took = timed_ms(
            lambda first=first, count=count: sql.execute(
                "select bench.make_history($1, $2, $3, $4)", first, count, begin, shape
            )
        )
        done = first + count - 1
        sql.execute("select setval('odc.job_id_seq', $1)", done)
        sql.execute("select odc.make_partitions()")
        print(f"  {done:,} jobs, {took / 1000:.0f} s", file=sys.stderr, flush=True)
    sql.execute("set synchronous_commit = on")
    sql.execute("vacuum analyze")
    return sql.value("select pg_database_size(current_database())") / jobs


class Work:
    """Submits, passes and ends on one database; most of the nodes stay free."""

    def __init__(self, sql: Sql) -> None:
        self.sql = sql
        self.queue = Queue(sql)
        self.queue.now = NOW
        self.times: dict[str, list[float]] = {}

    def batch(self, count: int) -> None:
        who = Identity(user="user7", uid=2007, gid=100, operator=False)
        jobs: list[int] = []
        for _ in range(count):
            self._time("submit", lambda: jobs.append(self.queue.submit(who, gpus=8)))
        started: list[int] = []
        self._time("pass", lambda: started.extend(self.queue.start()))
        assert len(started) == count, (len(started), count)
        self.queue.move(60)
        for job in started:
            self._time("end", lambda job=job: self.queue.end(job))
        self.queue.move(1)

    def _time(self, name: str, call: Callable[[], object]) -> None:
        self.times.setdefault(name, []).append(timed_ms(call))

    def medians(self) -> dict[str, float]:
        return {name: statistics.median(times) for name, times in self.times.items()}


def side_by_side(one: Work, other: Work, runs: int) -> None:
    """Alternate between the two batch by batch, so that other load on the machine affects both
    equally."""
    for work in (one, other):
        work.batch(BATCH)
        work.times.clear()
    for _ in range(runs):
        one.batch(BATCH)
        other.batch(BATCH)


def lists(sql: Sql, runs: int) -> dict[str, list[float]]:
    now = NOW + timedelta(days=1)
    queries = {
        "`history -u USER`, the last 50 jobs": f'{{"user": ["user7"], {ENDED}}}',
        "a user without any job": f'{{"user": ["newcomer"], {ENDED}}}',
        "page of ended jobs, 50 rows": f"{{{ENDED}}}",
        "page of failed jobs, 50 rows": '{"state": ["FAILED"]}',
    }
    took: dict[str, list[float]] = {}
    for name, filters in queries.items():
        took[name] = [
            timed_ms(lambda filters=filters: sql.rows(LIST, filters, now)) for _ in range(runs + 3)
        ][3:]
    return took


def locks_of_a_pass(sql: Sql) -> int:
    """The number of relation locks that the transaction of a pass that starts a job holds at its
    end. The minimum of several passes: the first ones, and those after an analyze, plan statements,
    which locks every index of their tables."""
    queue = Queue(sql)
    queue.now = NOW
    counts: list[int] = []
    for _ in range(5):
        queue.submit(gpus=8)
        sql.execute("begin")
        assert queue.start()
        counts.append(
            sql.value(
                "select count(*) from pg_locks where pid = pg_backend_pid() "
                "and locktype = 'relation'"
            )
        )
        sql.execute("commit")
    return min(counts)


def measured(jobs: int, runs: int, home: Path | None) -> list[Figure]:
    with database() as sql:
        reserve_ids(sql, 365)
        parts = sql.value("select count(*) from pg_class where relispartition and relkind = 'r'")
        locks = locks_of_a_pass(sql)
    with database() as nothing, database(home) as sql:
        per_job = fill(sql, jobs)
        nothing.execute("vacuum analyze")
        works = Work(nothing), Work(sql)
        side_by_side(*works, runs)
        empty, full = (work.medians() for work in works)
        took = lists(sql, runs * 4)
    figures = [
        Figure(
            f"{name} with {jobs:,} ended jobs, relative to an empty database",
            [full[name] / empty[name]], "x", 1.3,
            note=f"median {full[name]:.2f} ms against {empty[name]:.2f} ms",
        )
        for name in empty
    ]  # fmt: skip
    figures += [Figure(name, values, "ms", 50) for name, values in took.items()]
    figures += [
        Figure("locks of a pass after 365 days of a million jobs a day", [locks], "", 100,
               note=f"relation locks at the end of its transaction; {parts} partitions in all"),
        Figure("disk per ended job", [per_job], "bytes"),
    ]  # fmt: skip
    return figures


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.history", description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000_000, help="how many ended jobs")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument(
        "--home", type=Path, help="keep the filled database there, and use it again"
    )
    parser.add_argument("--write", action="store_true", help=f"write them into {RESULTS.name}")
    options = parser.parse_args()
    free = shutil.disk_usage("/tmp").free
    if options.home is None and free < options.jobs * 4000:
        parser.error(f"{options.jobs:,} jobs need about {options.jobs * 4000 >> 30} GiB in /tmp")
    begun = time.time()
    figures = measured(options.jobs, options.runs, options.home)
    print("\n".join([HEAD, *(figure.row() for figure in figures), "", *explained(figures)]))
    if options.write:
        facts = (
            f"`python -m benchmarks.history --jobs {options.jobs}`, commit "
            f"{git('log', '-1', '--format=%h')}: 1,000 nodes with 8 GPUs, {options.jobs:,} ended "
            f"jobs written by SQL, batches of {BATCH} jobs that are submitted one by one, started "
            f"by one pass and ended one by one; fsync on. {(time.time() - begun) / 60:.0f} minutes "
            f"on {machine()}. Load average at the end: {os.getloadavg()[0]:.1f}."
        )
        rows = [row.rsplit("|", 2)[0] + "|" for row in HEAD.splitlines()]
        rows += [figure.row().rsplit("|", 2)[0] + "|" for figure in figures]
        text = [HISTORY, "", *textwrap.wrap(facts, 100), "", *rows, "", *explained(figures), ""]
        RESULTS.write_text(with_section(RESULTS.read_text("utf-8"), HISTORY, "\n".join(text)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
