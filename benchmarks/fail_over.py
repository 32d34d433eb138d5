"""How long the cluster has no leader: python -m benchmarks.fail_over [--runs N] [--write].

Two daemons with the default lease on one PostgreSQL. In one measurement the leader is stopped while
one of its backends holds the term and waits for the leader to read the answer. In another one a
relay between daemon and PostgreSQL stops forwarding without resetting connections, as when a host
loses its power.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

from benchmarks.figures import HEAD, Figure, explained
from benchmarks.results import FAIL_OVER, RESULTS, git, machine, with_section
from tests.support.harness.daemon import Odc, new_odc, wait
from tests.support.harness.database import Sql, TestServer, shared_server
from tests.support.harness.pair import NODES, READ_MANY, pair, stop_in_the_worst_place
from tests.support.harness.relay import Relay

LEASE_S = 10
MAX_S = 60.0
"""Measurements that take longer are aborted, and count as this long."""
LOST = ("leader.database_down", "leader.lost")


def stopped(dsn: str) -> float:
    """The time from SIGSTOP in the worst place until the other daemon leads."""
    with pair(dsn, lease_s=LEASE_S) as both:
        leader = both.wait_for_leader()
        both.sql.execute(READ_MANY)
        since = stop_in_the_worst_place(both, leader)
        try:
            while both.term == 1 and time.monotonic() - since < MAX_S:
                time.sleep(0.05)
            return time.monotonic() - since
        finally:
            os.kill(leader, signal.SIGCONT)


def killed(dsn: str) -> float:
    """The time from SIGKILL until the other daemon leads."""
    with pair(dsn, lease_s=LEASE_S) as both:
        leader = both.wait_for_leader()
        os.kill(leader, signal.SIGKILL)
        since = time.monotonic()
        wait(lambda: both.term == 2, both.log)
        return time.monotonic() - since


def silent(dsn: str) -> tuple[float, float, float]:
    """The time from the silence of PostgreSQL until the leader notices, and until a request has its
    answer; then from the end of the silence until there is a leader again."""
    with (
        Relay(dsn) as relay,
        new_odc() as odc,
        Sql(dsn) as sql,
        odc.serving("serve", "--dsn", relay.dsn, *NODES),
    ):
        wait(lambda: sql.value("select holder is not null from odc.term"), odc.log)
        wait(lambda: odc.request("GET", "/ready")[0] == 200, odc.log)
        relay.cut()
        since = time.monotonic()
        answers: list[float] = []
        asking = threading.Thread(target=lambda: answers.append(_ask(odc, since)))
        asking.start()
        while not _lost(odc) and time.monotonic() - since < MAX_S:
            time.sleep(0.05)
        noticed = time.monotonic() - since
        asking.join()
        term = sql.value("select term from odc.term")
        relay.mend()
        mended = time.monotonic()
        while sql.value("select term from odc.term") == term:
            time.sleep(0.05)
        return noticed, answers[0], time.monotonic() - mended


def _lost(odc: Odc) -> bool:
    text = odc.home.with_name(f"{odc.home.name}.log").read_text()
    return any(word in text for word in LOST)


def _ask(odc: Odc, since: float) -> float:
    try:
        odc.request("GET", "/v1/nodes", timeout_s=MAX_S)
    except OSError:
        return MAX_S
    return time.monotonic() - since


def measure(server: TestServer, runs: int) -> list[Figure]:
    def each(what: str) -> list[str]:
        print(f"{what} ...", file=sys.stderr, flush=True)
        return [server.clone() for _ in range(runs)]

    stops = [stopped(dsn) for dsn in each("stopped leaders")]
    kills = [killed(dsn) for dsn in each("killed leaders")]
    silences = [silent(dsn) for dsn in each("a silent PostgreSQL")]
    noticed, answered, led = zip(*silences, strict=True)
    return [
        Figure(
            "leader replaced after SIGSTOP in the worst place", stops, "s", 15,
            note="its backend holds the term and waits for the leader to read the answer; the "
                 "lease of "
            "10 s dominates",
        ),
        Figure("leader replaced after SIGKILL", kills, "s", note="no daemon waits for the lease"),
        Figure(
            "silent loss of PostgreSQL noticed by the leader", noticed, "s", 10,
            note="a beat every 2.5 s, which waits 5 s for its answer",
        ),
        Figure(
            "the same for a request, which gets 503", answered, "s", 10,
            note="the listener asks every 2 s, and waits 5 s for its answer",
        ),
        Figure("a leader again after PostgreSQL answers", led, "s"),
    ]  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fail_over", description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--write", action="store_true", help=f"write them into {RESULTS.name}")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="odc-bench-") as folder,
        shared_server(Path(folder)) as server,
    ):
        figures = measure(server, options.runs)
    print(HEAD, *(figure.row() for figure in figures), "", *explained(figures), sep="\n")
    if options.write:
        text = RESULTS.read_text("utf-8")
        RESULTS.write_text(with_section(text, FAIL_OVER, section(figures, options.runs)))
    return 0


def section(figures: list[Figure], runs: int) -> str:
    lines = [
        FAIL_OVER,
        "",
        "Written by `python -m benchmarks.fail_over --write`, at commit "
        f"{git('log', '-1', '--format=%h')}, {runs} runs each.",
        f"Two daemons, a lease of {LEASE_S} s. Before connections had limits, the leader stopped",
        "in the worst place was not replaced at all; the silence was noticed after 122 s, for a",
        "request after 150 s.",
        f"Machine: {machine()}; load average at the end: {os.getloadavg()[0]:.1f}.",
        "",
        *(line.rsplit("|", 2)[0] + "|" for line in HEAD.splitlines()),
        *(figure.row().rsplit("|", 2)[0] + "|" for figure in figures),
        "",
        *explained(figures),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.exit(main())
