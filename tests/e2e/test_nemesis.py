"""Two daemons and one PostgreSQL under the faults of a nemesis: each accepted job ends once.

`make test-long` runs two minutes; `make test-soak` thirty, with the default lease of odcd.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from tests.support.harness.nemesis import faults
from tests.support.harness.nemesis.ledger import NAME, Ledger
from tests.support.harness.nemesis.link import BOTH, Link
from tests.support.harness.nemesis.run import a_run

SEED = int(os.environ.get("ODC_NEMESIS_SEED", "1"))
FOR_S = float(os.environ.get("ODC_NEMESIS_S", "120"))
LEASE_S = float(os.environ.get("ODC_NEMESIS_LEASE_S", "4"))
KINDS = frozenset(os.environ.get("ODC_NEMESIS_KINDS", ",".join(faults.KINDS)).split(","))
LED_S = 30.0
"""The longest time without a leader. odcd promises 15 s on a machine that is not busy."""


@pytest.mark.long
def test_each_accepted_job_ends_once_under_one_leader_during_faults(seed: Path) -> None:
    with a_run(seed, SEED, FOR_S, LEASE_S, LED_S, KINDS) as run:
        wrong = run.run()
        assert wrong == [], f"seed {SEED}: {len(wrong)} defects\n{run.pair.log()}"


def test_the_ledger_reports_jobs_that_ran_twice_at_once(tmp_path: Path) -> None:
    def wrong(*lines: str) -> list[str]:
        (tmp_path / NAME).write_text("".join(f"{line}\n" for line in lines))
        return Ledger.read(tmp_path).wrong()

    first = "start 1 1 0 n1 0,1 10.00", "end 1 1 0 n1 0,1 12.00"
    assert wrong(*first, "start 2 1 0 n1 1 12.00", "start 3 1 0 n2 1 11.00") == []
    [gpu] = wrong(*first, "start 2 1 0 n1 1 11.99")
    assert gpu.startswith("GPU 1 of n1: job 1 attempt 1 rank 0 until 12.0, job 2")
    assert wrong(*first, "start 1 1 0 n1 0,1 13.00") == ["job 1 attempt 1 rank 0 ran 2 times"]
    [job] = wrong(*first, "start 1 2 0 n2 0 11.00")
    assert job.startswith("job 1 rank 0: job 1 attempt 1 rank 0 until 12.0, job 1 attempt 2")


def test_the_same_seed_draws_the_same_faults() -> None:
    one, again, other = (
        [
            str(fault)
            for step in islice(faults.draw(seed, 4, faults.KINDS), 30)
            for fault in step.faults
        ]
        for seed in (7, 7, 8)
    )
    assert one == again != other


@pytest.fixture
def linked() -> Iterator[tuple[Link, socket.socket, socket.socket]]:
    """A link, its client's end and its server's."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        link = Link(server.getsockname()[1], "127.0.0.2")
        try:
            with socket.create_connection(("127.0.0.1", link.port), timeout=30) as client:
                behind, address = server.accept()
                with behind:
                    assert address[0] == "127.0.0.2"
                    behind.settimeout(30)
                    yield link, client, behind
        finally:
            link.close()


def test_a_held_link_passes_nothing_and_closes_nothing(
    linked: tuple[Link, socket.socket, socket.socket],
) -> None:
    link, client, behind = linked
    client.sendall(b"before")
    assert behind.recv(10) == b"before"
    link.hold(*BOTH)
    client.sendall(b"after")
    behind.settimeout(0.3)
    with pytest.raises(TimeoutError):
        behind.recv(10)
    link.mend()
    behind.settimeout(30)
    assert behind.recv(10) == b"after"


def test_a_link_that_is_reset_ends_both_sides(
    linked: tuple[Link, socket.socket, socket.socket],
) -> None:
    link, client, behind = linked
    link.reset()
    for side in (client, behind):
        with pytest.raises(ConnectionResetError):
            side.recv(10)
