"""How long a pass takes: decide alone, and a pass that writes 1,000 starts."""

from __future__ import annotations

import asyncio
import os
import statistics
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.figures import Figure, timed_ms, times_ms
from odcd import schema
from odcd.clock import SystemClock
from odcd.postgres import EmbeddedPostgres
from tests.support.database import Sql, admit_root, make_home, remove_home

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NODES = 1000
SLURM = "a backfill cycle of 24-58 s that looks at 400-740 of the jobs"


def passes(runs: int) -> list[Figure]:
    home = make_home()
    try:
        postgres = EmbeddedPostgres(home, int(os.environ.get("ODC_TEST_PG", "18")))
        postgres.start()
        admit_root(postgres)
        asyncio.run(schema.install(postgres.dsn, SystemClock()))
        with Sql(postgres.dsn) as sql:
            sql.execute(Path(__file__).with_name("queue.sql").read_text())
            return [*deciding(sql, runs), *passing(sql, runs)]
    finally:
        remove_home(home)


def empty(sql: Sql) -> None:
    sql.execute(
        "truncate odc.pending, odc.running, odc.allocation, odc.node_free, odc.node, odc.job, "
        "odc.event, odc.planned, odc.refusal, odc.limited, odc.pass cascade"
    )
    sql.execute("select bench.make_nodes($1, $2)", NODES, NOW)


def deciding(sql: Sql, runs: int) -> list[Figure]:
    figures: list[Figure] = []
    for pending, target in ((10_000, 8), (100_000, None)):
        empty(sql)
        sql.execute("select bench.make_running(95, $1)", NOW)
        sql.execute("select bench.make_pending($1, 15, $2)", pending, NOW)
        sql.execute("vacuum analyze")
        running = sql.value("select count(*) from odc.running")
        free = sql.value("select sum(gpus) from odc.node_free")
        query = "select looked, cardinality(start_jobs) as starts from odc.decide($1)"
        row = sql.row(query, NOW)
        took = times_ms(lambda: sql.row(query, NOW), 6 * runs)  # noqa: B023
        figures.append(
            Figure(
                f"`decide` with {pending:,} pending on {NODES:,} nodes x 8 GPUs", took, "ms",
                target,
                slurm=SLURM if target else "",
                note=f"{running:,} running, {free} GPUs free; {row['starts']} starts, "
                f"{row['looked']} jobs looked at. Reading the nodes and the shapes dominates",
            )
        )  # fmt: skip
    return figures


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
            "`plan_pass` including 1,000 starts written", took[1:], "ms", 30,
            note=f"decide is {statistics.median(decided[1:]):.1f} ms of it; the rest is writing "
            "the rows of running, allocation, node_free and event, and the flush",
        )
    ]  # fmt: skip
