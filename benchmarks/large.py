"""The duration of passes, ends and `why` on 10,000 nodes whose 80,000 GPUs are all in use."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

from benchmarks.figures import Figure, times_ms
from benchmarks.planning import NOW, empty, served
from benchmarks.policies import DECIDE, use
from tests.support.harness.database import Sql

NODES = 10_000
PENDING, USERS = 10_000, 50
RECORD = (
    "select odc.record_facts((select term from odc.term), array[$1]::bigint[], '{1}', '{0}', "
    "'{exited}', array[$2]::timestamptz[], '{0}', '{null}', '{null}', '{null}', $2)"
)


def fill(sql: Sql, nodes: int) -> None:
    empty(sql, nodes)
    sql.execute("select bench.make_full($1)", NOW)
    sql.execute("select bench.make_habits($1, $2, $3)", PENDING, USERS, NOW)
    sql.execute("vacuum analyze")
    use(sql, "odc")


def large(runs: int) -> list[Figure]:
    with served() as sql:
        sql.execute(Path(__file__).with_name("queue.sql").read_text())
        fill(sql, 1000)
        few = times_ms(lambda: sql.row(DECIDE, NOW), 3 * runs)
        fill(sql, NODES)
        many = times_ms(lambda: sql.row(DECIDE, NOW), 3 * runs)
        return [
            Figure("`decide` by `odc`, 10,000 nodes, 80,000 running, 10,000 pending", many, "ms",
                   30, note="every GPU is in use"),
            Figure("growth of `decide` from 1,000 to 10,000 full nodes", [min(many) / min(few)],
                   "times", 3, note=f"{min(few):.1f} ms and {min(many):.1f} ms, best of each"),
            *beside(sql, runs),
        ]  # fmt: skip


def beside(sql: Sql, runs: int) -> Iterator[Figure]:
    """The work between passes."""
    term = sql.value("select term from odc.term")
    sql.row("select looked from odc.plan_pass($1, $2)", term, NOW)
    waiting = iter(sql.values("select job_id from odc.pending order by job_id limit 1000"))
    why = "select count(*) from odc._why_waiting($1, $2)"
    yield Figure(
        "`why` of one pending job, 80,000 running",
        times_ms(lambda: sql.row(why, next(waiting), NOW), 2 * runs), "ms",
    )  # fmt: skip
    moved = "select count(*) from odc.moved_ends($1)"
    yield Figure(
        "time limits that moved, asked at each wake, 80,000 running",
        times_ms(lambda: sql.row(moved, term), 5 * runs), "ms", 1,
    )  # fmt: skip
    running = iter(sql.values("select job_id from odc.running order by job_id limit 1000"))
    yield Figure(
        "end of one job, 80,000 running",
        times_ms(lambda: sql.execute(RECORD, next(running), NOW), 20 * runs, warm=20), "ms", 2,
        note="`record_facts`, committed",
    )  # fmt: skip
    minutes = count(1)
    sweep = "select odc.sweep($1, $2::timestamptz + interval '1 minute' * $3)"
    yield Figure(
        "sweep, 80,000 running",
        times_ms(lambda: sql.execute(sweep, term, NOW, next(minutes)), runs, warm=1), "ms",
        note="recounts the books; once a minute",
    )  # fmt: skip
    assert sql.values("select odc.check_books()") == []
