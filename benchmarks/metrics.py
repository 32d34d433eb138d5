"""The cost of a scrape of /metrics, and of the sample behind it: python -m benchmarks.metrics
[--write].

100,000 pending jobs, 1,000 nodes, and 8,000 live members, each a separate job, of 50 users; odcd's
HTTP server on a Unix socket, and a separate PostgreSQL. The process's own counters are those of a
daemon that has used every route, with success and failure, and all functions and backends.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.figures import HEAD, Figure, explained
from benchmarks.planning import served
from benchmarks.results import METRICS, RESULTS, git, machine, with_section
from odcd.api.app import create_app, operations
from odcd.api.http.context import Api
from odcd.api.http.server import HttpServer
from odcd.clock import SystemClock
from odcd.database.pool import Database
from odcd.events import EventHub
from odcd.jobs.submit_batches import SubmitBatcher
from odcd.metrics import Metrics
from odcd.metrics.families import MEASURES
from odcd.metrics.sampler import APPLICATION, Sampler
from odcd.stores.store import Store
from tests.support.harness.database import Sql

PENDING = 100_000
NODES = 1_000
MEMBERS = 8_000
EVENTS = 2_000
RUNS = 20
OPENMETRICS = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5"
RUNNING = """
    with place as (
        select nextval('odc.job_id_seq') as id, n.id as node_id, g, 1001 + (row_number() over ())::integer % 50 as uid
          from odc.node as n cross join generate_series(0, $1::integer / $2::integer - 1) as g
    ), job as (
        insert into odc.job (id, name, user_name, uid, gid, account_id, qos_id, partition_ids, shape_id,
                             submitted_at, time_limit_s, requeue, work_dir, umask, script_digest, environment_digest)
        select id, 'run', 'user' || uid, uid, uid, 1, 1, '{1}', bench.shape(1, 1), $3, 86400, true, '/tmp', 18, '', ''
          from place
    ), run as (
        insert into odc.running (job_id, attempt, state, shape_id, partition_id, uid, account_id, qos_id, nice, queued_at,
                                 eligible_at, started_at, time_limit_s, ends_at, sent_ends_at, node_count, live_members)
        select id, 1, 'RUNNING', bench.shape(1, 1), 1, uid, 1, 1, 0, $3, $3, $3, 86400, $3 + interval '1 day',
               $3 + interval '1 day', 1, 1 from place
    ), held as (
        insert into odc.allocation (job_id, rank, node_id, gpu_mask, gpus, cpus, mem_mib, ends_at, state)
        select id, 0, node_id, 1::bigint << g, 1, 16, 100000, $3 + interval '1 day', 'running' from place
    ), known as (
        insert into odc.usage (account_id, uid, qos_id, user_name, used_at)
        select distinct 1, uid, 1, 'user' || uid, $3 from place
    ), recorded as (
        insert into odc.event (at, kind, actor, job_id, detail)
        select $3, 'started', 'odcd', id, jsonb_build_object('attempt', 1, 'nodes', array['x']) from place
    )
    update odc.node_free set gpu_mask = 0, gpus = 0, cpus = cpus - 128, mem_mib = mem_mib - 800000, jobs = 8
"""  # noqa: E501


def fill(sql: Sql, now: datetime) -> None:
    sql.execute(Path(__file__).with_name("queue.sql").read_text())
    sql.execute("select bench.make_nodes($1, $2)", NODES, now)
    sql.execute(RUNNING, MEMBERS, NODES, now)
    sql.execute("select odc._repair_use()")
    sql.execute("select bench.make_pending($1, 5, $2)", PENDING, now)
    sql.execute("update odc.pending set eligible_at = queued_at")
    sql.execute("vacuum analyze")
    sql.execute("select started from odc.plan_pass((select term from odc.term), $1, 1000)", now)


def use(metrics: Metrics, api: Api) -> None:
    """Use every metric, as if each route and backend had been used."""
    for operation in operations(api):
        for code in (200, 404):
            metrics.answered(operation.method, operation.path, code, 0.01)
    for number in range(100):
        metrics.queried(f"function_{number}", 0.002)
    kubernetes, runner = metrics.backend("kubernetes"), metrics.backend("runner")
    for number in range(20):
        kubernetes.took(f"get kind_{number}", 0.01)
        runner.took(f"op_{number}", 0.01)


async def measure(dsn: str, folder: Path) -> list[Figure]:
    clock, metrics = SystemClock(), Metrics()
    async with Database(dsn, size=2, watch=metrics) as database:
        store = Store(database)
        # Each time, run everything that is measured every time; the rest runs only the first time.
        every = {name: 0.0 if every_s < 10 else every_s for name, every_s in MEASURES.items()}
        sampler = Sampler(database, clock, metrics, every)
        api = Api(
            store=store, batcher=SubmitBatcher(store.jobs, clock),
            events=EventHub(store.events, clock),
            clock=clock, wake=lambda: None, executor_of=lambda: None, listening=lambda: True,
            led=lambda: True, metrics=metrics, scrape=sampler.scrape, own_uid=os.getuid(),
        )  # fmt: skip
        use(metrics, api)
        metrics.passed(0.01, 100, clock.now().timestamp())
        term = await database.fetchval("select term from odc.term")
        figures = await functions(database, clock)
        wholes: list[float] = []
        server = HttpServer(create_app(api), path=folder / "s", mode=0o600)
        server.bind()
        running = asyncio.create_task(server.run())
        try:
            async with database.dedicated(name=APPLICATION, limit_s=60.0) as session:
                for _ in range(RUNS):
                    begun = time.perf_counter()
                    await sampler.measure_once(session, term, dict)
                    wholes.append((time.perf_counter() - begun) * 1000)
            scrapes, size = await scraped(folder / "s")
        finally:
            server.stop()
            await running
    return [
        Figure(
            "scrape with 100,000 pending, 1,000 nodes, 8,000 live members", scrapes, "ms", 30,
            note=f"over the socket, {size / 1e6:.1f} MB; the process's own counters, rendered at "
            "each scrape, and the transfer dominate: the cluster's text is rendered once per "
            "sample",
        ),
        Figure(
            "sample of the cluster, every 5 s", wholes[1:], "ms", 250,
            note="in PostgreSQL, except the rendering; then sampling pauses for 20 times as long",
        ),
        *figures,
    ]  # fmt: skip


async def functions(database: Database, clock: SystemClock) -> list[Figure]:
    term = await database.fetchval("select term from odc.term")
    found: list[Figure] = []
    queries = {name: f"select count(value) from odc.{name}($1)" for name in MEASURES}
    async with database.dedicated(name=APPLICATION, limit_s=60.0) as session:
        begun = time.perf_counter()
        folded = await session.fetchval(
            "select odc.fold_tally($1, $2, $3)", term, EVENTS, clock.now()
        )
        assert folded == EVENTS, folded
        took = (time.perf_counter() - begun) * 1000
        found.append(Figure(f"`fold_tally` of {EVENTS:,} events", [took], "ms"))
        while await session.fetchval("select odc.fold_tally($1, 2000, $2)", term, clock.now()):
            pass
        took = await times(
            session.fetchval, "select odc.fold_tally($1, 2000, $2)", term, clock.now()
        )
        found.append(Figure("`fold_tally` of none, GPU time of 8,000 members", took, "ms"))
        for name, query in queries.items():
            took = await times(session.fetchval, query, clock.now())
            found.append(Figure(f"`{name}`, every {MEASURES[name]:g} s", took, "ms"))
        took = await times(session.fetchval, "select odc.render_job_info('{}', '{}')")
        found.append(Figure("`render_job_info`, every 5 s", took, "ms"))
    return found


async def times(call: Callable[..., Awaitable[Any]], *arguments: object) -> list[float]:
    took: list[float] = []
    for _ in range(RUNS // 4 + 1):
        begun = time.perf_counter()
        await call(*arguments)
        took.append((time.perf_counter() - begun) * 1000)
    return took[1:]


async def scraped(path: Path) -> tuple[list[float], int]:
    """Scrape on an open connection, as Prometheus does."""
    reader, writer = await asyncio.open_unix_connection(str(path), limit=1 << 26)
    took: list[float] = []
    size = 0
    for _ in range(RUNS + 3):
        begun = time.perf_counter()
        writer.write(
            f"GET /metrics HTTP/1.1\r\nHost: odc\r\nAccept: {OPENMETRICS}\r\n\r\n".encode()
        )
        head = await reader.readuntil(b"\r\n\r\n")
        size = int(head.lower().partition(b"content-length: ")[2].split()[0])
        body = await reader.readexactly(size)
        took.append((time.perf_counter() - begun) * 1000)
        assert body.endswith(b"# EOF\n")
        assert body.count(b"odcd_job_info{") == MEMBERS
    writer.close()
    return took[3:], size


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.metrics", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write them into {RESULTS.name}")
    options = parser.parse_args()
    with served() as sql, tempfile.TemporaryDirectory(prefix="odc-bench-") as folder:
        fill(sql, datetime.now(UTC))
        figures = asyncio.run(measure(sql.dsn, Path(folder)))
    print(HEAD, *(figure.row() for figure in figures), "", *explained(figures), sep="\n")
    if options.write:
        text = RESULTS.read_text("utf-8")
        RESULTS.write_text(with_section(text, METRICS, section(figures)))
    return 0


def section(figures: list[Figure]) -> str:
    lines = [
        METRICS,
        "",
        "Written by `python -m benchmarks.metrics --write`, at commit "
        f"{git('log', '-1', '--format=%h')}, {RUNS} runs each. {PENDING:,} pending",
        f"jobs, {NODES:,} nodes, {MEMBERS:,} live members of as many jobs of 50 users. ",
        f"PostgreSQL, the HTTP server and this benchmark share the machine: {machine()}.",
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
