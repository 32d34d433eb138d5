"""Frequent reads by users: the queue; and the memory that a long queue costs the daemon."""

from __future__ import annotations

from benchmarks.client import Client, request
from benchmarks.daemon import Daemon, full
from benchmarks.figures import Figure, times_ms
from benchmarks.submitting import MANY, thin

PENDING = 100_000


def commands(runs: int) -> list[Figure]:
    with full() as daemon, daemon.client() as client:
        fill(daemon, client, MANY)
        queue = times_ms(lambda: daemon.command("odcctl", "queue"), 5 * runs)
        show = times_ms(lambda: daemon.command("odcctl", "show", "1"), 5 * runs)
    return [
        Figure(
            f"`odcctl queue` with {MANY:,} pending, whole process", queue, "ms", 350,
            slurm="queue",
            note="PostgreSQL writes the JSON, which dominates, and odcctl formats the table",
        ),
        Figure(
            "`odcctl show 1`, whole process", show, "ms", 120,
            note="Python's start and imports dominate, Typer's above all",
        ),
    ]  # fmt: skip


def memory(runs: int) -> list[Figure]:
    del runs
    with full() as daemon, daemon.client() as client:
        fill(daemon, client, PENDING)
        # A client that lists everything, page by page, must not leave its pages in memory.
        daemon.command("odcctl", "queue")
        resident, proportional = daemon.resident_mib()
    return [
        Figure(
            f"daemon resident memory with {PENDING:,} pending", [resident], "MiB", 150,
            slurm="memory",
            note=f"after submitting them in batches of {MANY:,} and listing them all once; "
            f"Pss {proportional:.0f} MiB. Python, its libraries and the buffers of the biggest "
            "request dominate: no job is kept in the daemon",
        )
    ]  # fmt: skip


def fill(daemon: Daemon, client: Client, count: int) -> None:
    batch = request("POST", "/v1/jobs/batch", {"jobs": [thin(daemon, n) for n in range(MANY)]})
    for _ in range(count // MANY):
        client.exchange(batch)
    daemon.wait_for(client, PENDING=count)
