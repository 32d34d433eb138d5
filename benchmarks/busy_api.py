"""Passes and beats during 200 slow requests: python -m benchmarks.busy_api [--write].

Ten users keep twenty slow requests each open. In one measurement the requests wait in PostgreSQL,
as for a lock or a disk; in the other they compute there.
"""

from __future__ import annotations

import argparse
import http.client
import multiprocessing
import os
import socket
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Generator, Iterable
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figures import HEAD, Figure, explained, percentile
from benchmarks.results import BUSY_API, RESULTS, git, machine, with_section
from tests.support.harness.daemon import Odc, new_odc, wait
from tests.support.harness.database import Sql, shared_server

USERS, REQUESTS = 10, 20
SECONDS = 30.0
GAP_S = 0.05
PENDING = 2_000
NODE = ("--node", "big=h100:8x64")
WAITS = "select coalesce(nullif(pg_sleep(8)::text, ''), '[]')"
COMPUTES = "select json_agg(0) filter (where n < 0)::text from generate_series(1, 20000000) as n"
SLOW = """
    create or replace function odc.list_policies(p_names text[] default null) returns text
    language sql as $$ {body} $$
"""


@dataclass
class Beside:
    """The passes and beats during the load."""

    passes_ms: list[float]
    beat_gaps_s: list[float]
    terms: int
    statuses: Counter[str]


@contextmanager
def load(odc: Odc, users: int) -> Generator[Counter[str]]:
    """Users who send the next request as soon as they have an answer, each in a separate
    process."""
    statuses: Counter[str] = Counter()
    # Fork, because another user may not be able to read this program's files.
    forks = multiprocessing.get_context("fork")
    with ExitStack() as stack:
        for number in range(users):
            reads, writes = os.pipe()
            uid = 64_000 + number if os.getuid() == 0 else None
            process = forks.Process(
                target=ask, args=(str(odc.home / "odcd.sock"), uid, writes), daemon=True
            )
            process.start()
            os.close(writes)
            stack.callback(process.join)
            stack.callback(process.kill)
            lines = stack.enter_context(os.fdopen(reads))
            threading.Thread(target=count, args=(lines, statuses), daemon=True).start()
        yield statuses


def count(lines: Iterable[str], statuses: Counter[str]) -> None:
    # At the end the file is closed while this thread still reads it.
    with suppress(ValueError):
        for line in lines:
            statuses[line.strip()] += 1


def ask(path: str, uid: int | None, output: int) -> None:
    """Twenty threads that send requests forever; prints the status of each answer on a line."""
    if uid is not None:
        os.setuid(uid)

    def one() -> None:
        while True:
            connection = http.client.HTTPConnection("odc", timeout=120)
            connection.sock = socket.socket(socket.AF_UNIX)
            try:
                connection.sock.connect(path)
                connection.request("GET", "/v1/policies")
                answer = connection.getresponse()
                answer.read()
                os.write(output, f"{answer.status}\n".encode())
                if retry := answer.getheader("retry-after"):
                    time.sleep(int(retry))
            except (OSError, http.client.HTTPException):
                os.write(output, b"none\n")
                time.sleep(1)
            finally:
                connection.close()

    threads = [threading.Thread(target=one) for _ in range(REQUESTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def observe(odc: Odc, sql: Sql, users: int) -> Beside:
    first = sql.value("select coalesce(max(id), 0) from odc.pass")
    term = sql.value("select term from odc.term")
    gaps: list[float] = []
    with load(odc, users) as statuses:
        if users:
            # Wait until they have all the connections that they can have.
            time.sleep(5)
        beat, since = sql.value("select beat from odc.term"), time.monotonic()
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            sql.execute("notify odc")
            time.sleep(GAP_S)
            now = sql.value("select beat from odc.term")
            if now != beat:
                gaps.append(time.monotonic() - since)
                beat, since = now, time.monotonic()
        gaps.append(time.monotonic() - since)
    passes = sql.values("select took_ms from odc.pass where id > $1 order by id", first)
    return Beside(passes, gaps[1:], sql.value("select term from odc.term") - term, statuses)


def fill(odc: Odc) -> None:
    """One job that takes the whole node, and many that wait for it."""
    script = "#!/bin/sh\nexec sleep 100000\n"
    job = {"script": script, "work_dir": str(odc.work), "gpus": 8, "time_limit_s": 86_400}
    status, answer = odc.request("POST", "/v1/jobs", job)
    assert status == 201, answer
    odc.wait_for(answer["id"], "RUNNING")
    jobs = [{**job, "gpus": 1 + n % 8, "time_limit_s": 600 * (1 + n % 40)} for n in range(PENDING)]
    status, answer = odc.request("POST", "/v1/jobs/batch", {"jobs": jobs})
    assert status in (200, 201), answer


def measure(dsn: str) -> list[Figure]:
    with new_odc() as odc, Sql(dsn) as sql, odc.serving("serve", "--dsn", dsn, *NODE):
        wait(lambda: sql.value("select holder is not null from odc.term"), odc.log)
        fill(odc)
        quiet = observe(odc, sql, 0)
        found = [
            Figure("pass, p99, no requests", [percentile(quiet.passes_ms, 0.99)], "ms",
                   note=f"{len(quiet.passes_ms)} passes in {SECONDS:.0f} s"),
            Figure("longest time between beats, no requests", [max(quiet.beat_gaps_s)], "s"),
        ]  # fmt: skip
        for what, body in (("that wait", WAITS), ("that compute", COMPUTES)):
            sql.execute(SLOW.format(body=body))
            busy = observe(odc, sql, USERS)
            found += _figures(what, quiet, busy)
        return found


def _figures(what: str, quiet: Beside, busy: Beside) -> list[Figure]:
    n = USERS * REQUESTS
    p99, before = (percentile(of.passes_ms, 0.99) for of in (busy, quiet))
    answers = ", ".join(f"{count:,} of {status}" for status, count in busy.statuses.most_common())
    return [
        Figure(f"pass, p99, {n} slow requests {what}", [p99], "ms",
               note=f"{len(busy.passes_ms)} passes; answers: {answers or 'none'}"),
        Figure("the same, relative to no requests", [p99 / before], "times",
               1.5 if what == "that wait" else None),
        Figure(f"longest time between beats, {n} slow requests {what}", [max(busy.beat_gaps_s)],
               "s", 5),
        Figure(f"leaders lost, {n} slow requests {what}", [busy.terms], ""),
    ]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.busy_api", description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write them into {RESULTS.name}")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="odc-bench-") as folder,
        shared_server(Path(folder)) as server,
    ):
        figures = measure(server.clone())
    print(HEAD, *(figure.row() for figure in figures), "", *explained(figures), sep="\n")
    if options.write:
        text = RESULTS.read_text("utf-8")
        RESULTS.write_text(with_section(text, BUSY_API, section(figures)))
    return 0


def section(figures: list[Figure]) -> str:
    lines = [
        BUSY_API,
        "",
        "Written by `python -m benchmarks.busy_api --write`, at commit "
        f"{git('log', '-1', '--format=%h')}.",
        f"{USERS} users with {REQUESTS} slow requests each at one endpoint, {PENDING:,} jobs",
        f"that are pending, a pass every {GAP_S * 1000:.0f} ms for {SECONDS:.0f} s. All on one "
        "machine",
        f"{machine()}; load average at the end: {os.getloadavg()[0]:.1f}.",
        "",
        *(line.rsplit("|", 2)[0] + "|" for line in HEAD.splitlines()),
        *(figure.row().rsplit("|", 2)[0] + "|" for figure in figures),
        "",
        *explained(figures),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
