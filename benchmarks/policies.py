"""The duration of decisions: by policy, by length of the queue, with many planned starts, on more
nodes. Also the duration of `why` and of expected starts."""

from __future__ import annotations

from pathlib import Path

from benchmarks.figures import Figure, times_ms
from benchmarks.planning import NOW, empty, served
from tests.support.harness.database import Sql

TARGETS = {"fifo": (5, 8, 20), "multifactor": (5, 8, 20), "odc": (6, 10, 25)}
QUEUES = ((10_000, 50), (100_000, 200), (1_000_000, 500))
"""The number of pending jobs, and of their users."""
DECIDE = "select looked, classes, cardinality(start_jobs) as starts from odc.decide($1)"


def policies(runs: int) -> list[Figure]:
    with served() as sql:
        sql.execute(Path(__file__).with_name("queue.sql").read_text())
        figures: list[Figure] = []
        for size, (pending, users) in enumerate(QUEUES):
            fill(sql, 1000, pending, users)
            figures += [
                deciding(sql, policy, pending, targets[size], runs)
                for policy, targets in TARGETS.items()
            ]
            if pending == 10_000:
                figures += [deep(sql, runs), *explaining(sql, runs)]
        return [*figures, growth(sql, runs)]


def fill(sql: Sql, nodes: int, pending: int, users: int) -> None:
    empty(sql, nodes)
    sql.execute("select bench.make_running(98, $1)", NOW)
    sql.execute("select bench.make_habits($1, $2, $3)", pending, users, NOW)
    sql.execute("vacuum analyze")


def use(sql: Sql, policy: str) -> None:
    sql.execute("update odc.partition set policy = $1", policy)


def deciding(sql: Sql, policy: str, pending: int, target: float, runs: int) -> Figure:
    use(sql, policy)
    row = sql.row(DECIDE, NOW)
    return Figure(
        f"`decide` by `{policy}`, {pending:,} pending",
        times_ms(lambda: sql.row(DECIDE, NOW), 5 * runs), "ms", target,
        note=f"{row['classes']:,} classes, {row['looked']} jobs considered, {row['starts']} starts",
    )  # fmt: skip


def deep(sql: Sql, runs: int) -> Figure:
    use(sql, "fifo")
    query = "select cardinality(head_jobs) as heads from odc.decide($1, p_depth => 100)"
    heads = sql.row(query, NOW)["heads"]
    return Figure(
        "`decide` with 100 protected starts, 10,000 pending",
        times_ms(lambda: sql.row(query, NOW), 2 * runs), "ms", 30,
        note=f"`fifo`, {heads} planned; the search for their earliest starts dominates",
    )  # fmt: skip


def explaining(sql: Sql, runs: int) -> list[Figure]:
    use(sql, "odc")
    term = sql.value("select term from odc.term")
    sql.row("select looked from odc.plan_pass($1, $2)", term, NOW)
    waiting = sql.values("select job_id from odc.pending order by job_id limit 1000")
    picks = iter(waiting * 100)
    why = "select count(*) from odc._why_waiting($1, $2)"
    when = "select count(*) from odc.forecast($1, 1000)"
    whys = times_ms(lambda: sql.row(why, next(picks), NOW), 5 * runs)
    return [
        Figure("`why` of one pending job", whys, "ms", 10,
               note="of 10,000 pending; two plans with the job alone, one with the whole queue"),
        Figure("expected starts of the first 1,000 pending",
               times_ms(lambda: sql.row(when, NOW), 2 * runs), "ms", 60,
               note="on a separate connection, so passes do not wait for it"),
    ]  # fmt: skip


def growth(sql: Sql, runs: int) -> Figure:
    took: dict[int, float] = {}
    for nodes in (1000, 5000):
        fill(sql, nodes, 10_000, 50)
        use(sql, "odc")
        took[nodes] = min(times_ms(lambda: sql.row(DECIDE, NOW), 5 * runs))
    return Figure(
        "growth of `decide` from 1,000 to 5,000 nodes", [took[5000] / took[1000]], "times", 5,
        note=f"{took[1000]:.1f} ms and {took[5000]:.1f} ms, best of each; `odc`, 10,000 pending",
    )  # fmt: skip
