"""Submits during a storm of connections and slow requests: python -m benchmarks.storm [--write].

Normal users submit jobs one by one. Then they do the same while strangers and other users open
connections as fast as they are allowed to, and send headers and bodies that never end.
"""

from __future__ import annotations

import argparse
import http.client
import itertools
import json
import os
import socket
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from benchmarks.figures import HEAD, Figure, explained, percentile
from benchmarks.results import RESULTS, STORM, git, machine, with_section
from tests.attack.front import FORKS, Place, connected, metric, tcp
from tests.support.harness.daemon import Odc, new_odc, wait
from tests.support.harness.database import Sql, shared_server

SECONDS = 30.0
THREADS = 4
PAUSE_S = 0.02
HONEST = 64_100
FLOODS, A_SECOND, KEPT = 4, 250, 600
"""The number of processes that open connections, how many each opens per second, and how many it
keeps open."""
SLOW = 200
"""The number of open requests of each slow client."""
NODE = ("--node", "big=h100:8x64")
LIMIT = 3.0


@contextmanager
def forked(uid: int, work: Callable[[], None]) -> Generator[None]:
    """A process with that uid, which is ended on exit."""

    def become() -> None:
        if os.geteuid() == 0:
            os.setgid(uid)
            os.setuid(uid)
        work()

    process = FORKS.Process(target=become, daemon=True)
    process.start()
    try:
        yield
    finally:
        process.kill()
        process.join()


def flood(place: Place, source: str) -> None:
    """Opens connections at a steady rate, and closes the oldest."""
    kept: deque[socket.socket] = deque()
    begun = time.monotonic()
    for count in itertools.count():
        time.sleep(max(0.0, begun + count / A_SECOND - time.monotonic()))
        with suppress(OSError):
            kept.append(connected(place, source))
        if len(kept) > KEPT:
            kept.popleft().close()


def drip(place: Place, source: str, begin: bytes, piece: bytes) -> None:
    """Keeps requests open that progress by one piece per second."""
    open_: list[socket.socket] = []
    while True:
        while len(open_) < SLOW:
            try:
                connection = connected(place, source)
                connection.sendall(begin)
            except OSError:
                break
            connection.setblocking(False)
            open_.append(connection)
        time.sleep(1)
        for connection in list(open_):
            try:
                connection.send(piece)
            except OSError:
                connection.close()
                open_.remove(connection)


@contextmanager
def storm(path: str, place: Place) -> Generator[None]:
    head = b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\n"
    body = head + b"Content-Length: 1000000\r\n\r\n"
    attacks: list[Callable[[], None]] = [
        lambda: drip(place, "127.0.1.1", head, b"x: y\r\n"),
        lambda: drip(place, "127.0.1.2", body, b" "),
        lambda: drip(path, "", body, b" "),
    ]
    for number in range(FLOODS):
        source = f"127.0.2.{number + 1}"
        attacks.append(lambda s=source: flood(place if s.endswith(("1", "3")) else path, s))
    with ExitStack() as stack:
        for number, attack in enumerate(attacks):
            stack.enter_context(forked(64_001 + number, attack))
        # Wait until each has as many as it can have.
        time.sleep(KEPT / A_SECOND + 2)
        yield


def submit(path: str, job: bytes, output: int) -> None:
    """Threads that submit; prints the milliseconds of each answer, or its status, on a line."""

    def one() -> None:
        while True:
            begun = time.perf_counter()
            connection = http.client.HTTPConnection("localhost", timeout=60)
            try:
                connection.sock = connected(path)
                connection.request("POST", "/v1/jobs", job, {"Content-Type": "application/json"})
                status = connection.getresponse().status
            except (OSError, http.client.HTTPException):
                status = 0
            finally:
                connection.close()
            took_ms = (time.perf_counter() - begun) * 1000
            os.write(output, f"{took_ms if status == 201 else -status}\n".encode())
            time.sleep(PAUSE_S)

    for _ in range(THREADS):
        threading.Thread(target=one).start()


def observe(odc: Odc, sql: Sql) -> tuple[list[float], int]:
    """The duration of submits in ms, and the number of failed ones."""
    job = {"script": "#!/bin/sh\ntrue\n", "work_dir": "/tmp", "gpus": 8, "time_limit_s": 600}
    data, path = json.dumps(job).encode(), str(odc.home / "odcd.sock")
    reads, writes = os.pipe()
    with os.fdopen(reads) as lines:
        with forked(HONEST, lambda: submit(path, data, writes)):
            time.sleep(SECONDS)
        os.close(writes)
        found = [float(line) for line in lines if line.endswith("\n")]
    status, answer = odc.request("POST", "/v1/jobs/cancel", {"state": "PENDING"})
    assert status == 200, answer
    wait(lambda: sql.value("select count(*) = 0 from odc.pending") or None, odc.log)
    return [ms for ms in found if ms > 0], sum(ms <= 0 for ms in found)


def measure(dsn: str) -> list[Figure]:
    with new_odc() as odc, Sql(dsn) as sql:
        odc.environment["ODC_LISTEN"] = "127.0.0.1:0"
        with odc.serving("serve", "--dsn", dsn, *NODE):
            wait(lambda: sql.value("select holder is not null from odc.term"), odc.log)
            script = {"script": "#!/bin/sh\nexec sleep 100000\n", "work_dir": str(odc.work)}
            status, answer = odc.request("POST", "/v1/jobs", script | {"gpus": 8})
            assert status == 201, answer
            odc.wait_for(answer["id"], "RUNNING")
            path, place = str(odc.home / "odcd.sock"), tcp(odc)
            observe(odc, sql)  # warms up
            quiet, lost = observe(odc, sql)
            with storm(path, place):
                busy, failed = observe(odc, sql)
            counts = [
                metric(path, f"odcd_http_{name}_total")
                for name in ("connections_refused", "requests_rejected")
            ]
    before, p99 = percentile(quiet, 0.99), percentile(busy, 0.99)
    return [
        Figure("submit, p99, quiet", [before], "ms",
               note=f"{len(quiet)} submits in {SECONDS:.0f} s, {lost} failed"),
        Figure("submit, p99, in the storm", [p99], "ms",
               note=f"{len(busy)} submits, {failed} failed; {counts[0]:,.0f} connections were "
               f"refused and {counts[1]:,.0f} requests rejected"),
        Figure("the same, relative to the quiet time", [p99 / before], "times", LIMIT),
        Figure("submit, median, quiet", [percentile(quiet, 0.5)], "ms"),
        Figure("submit, median, in the storm", [percentile(busy, 0.5)], "ms"),
        Figure("normal submits that failed in the storm", [failed], "", 0),
    ]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.storm", description=__doc__)
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
        RESULTS.write_text(with_section(text, STORM, section(figures)))
    return 0


def section(figures: list[Figure]) -> str:
    lines = [
        STORM,
        "",
        "Written by `python -m benchmarks.storm --write`, at commit "
        f"{git('log', '-1', '--format=%h')}.",
        f"{THREADS} normal clients submit jobs over the Unix socket. The storm: {FLOODS} processes",
        f"that open {A_SECOND} connections per second each and keep up to {KEPT}, half of them "
        "over",
        f"TCP; {3 * SLOW} requests whose headers or body progress by a few bytes per second. All "
        "on one",
        f"machine with {machine()}; load average at the end: {os.getloadavg()[0]:.1f}.",
        "",
        *(line.rsplit("|", 2)[0] + "|" for line in HEAD.splitlines()),
        *(figure.row().rsplit("|", 2)[0] + "|" for figure in figures),
        "",
        *explained(figures),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
