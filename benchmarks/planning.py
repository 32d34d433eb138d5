"""How long a pass that writes 1,000 starts takes."""

from __future__ import annotations

import asyncio
import os
import statistics
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.figures import Figure, timed_ms
from odcd.clock import SystemClock
from odcd.database import schema
from odcd.home.postgres import EmbeddedPostgres
from tests.support.harness.database import Sql, admit_root, make_home, remove_home

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NODES = 1000


@contextmanager
def served() -> Iterator[Sql]:
    """A session on a separate server and database."""
    home = make_home()
    try:
        postgres = EmbeddedPostgres(home, int(os.environ.get("ODC_TEST_PG", "18")))
        postgres.start()
        admit_root(postgres)
        asyncio.run(schema.install(postgres.dsn, SystemClock()))
        with Sql(postgres.dsn) as sql:
            yield sql
    finally:
        remove_home(home)


def passes(runs: int) -> list[Figure]:
    with served() as sql:
        sql.execute(Path(__file__).with_name("queue.sql").read_text())
        sql.execute("update odc.partition set policy = 'fifo'")
        return passing(sql, runs)


def empty(sql: Sql, nodes: int = NODES) -> None:
    sql.execute(
        "truncate odc.pending, odc.running, odc.running_use, odc.allocation, odc.node_free, "
        "odc.node, odc.job, odc.event, odc.planned, odc.refusal, odc.limited, odc.pass cascade"
    )
    sql.execute("select bench.make_nodes($1, $2)", nodes, NOW)


def passing(sql: Sql, runs: int) -> list[Figure]:
    """A pass that starts 1,000 jobs, writes included, committed."""
    took: list[float] = []
    decided: list[float] = []
    for _ in range(runs + 1):
        empty(sql)
        sql.execute("select bench.make_pending($1, 5, $2)", 10_000, NOW)
        sql.execute("vacuum analyze")
        rows: list[dict[str, object]] = []
        query = (
            "select cardinality(started) as started, decide_ms from odc.plan_pass("
            "(select term from odc.term), $1, 1000)"
        )
        took.append(timed_ms(lambda: rows.append(sql.row(query, NOW))))  # noqa: B023
        decided.append(float(str(rows[0]["decide_ms"])))
        assert rows[0]["started"] == 1000
        assert sql.values("select odc.check_books()") == []
    return [
        Figure(
            "`plan_pass` including 1,000 starts written", took[1:], "ms", 25,
            note=f"decide takes {statistics.median(decided[1:]):.1f} ms of it; the rest is writing "
            "the rows of running, allocation, node_free and event, and the flush",
        )
    ]  # fmt: skip
