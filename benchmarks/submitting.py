"""Adding jobs to the queue and removing them: one job per request, an array, a batch, cancels."""

from __future__ import annotations

from benchmarks.client import Client, request, send_all
from benchmarks.daemon import Daemon, full, job
from benchmarks.figures import Figure, timed_ms

CLIENTS = 8
JOBS = 4_000
MANY = 10_000


def submits(runs: int) -> list[Figure]:
    with full() as daemon, daemon.client() as client:
        message = request("POST", "/v1/jobs", job(daemon, gpus=1))
        rates: list[float] = []
        for _ in range(runs + 1):
            begin, end = send_all(daemon.socket, [message] * JOBS, CLIENTS)
            rates.append(JOBS / (end - begin))
            cancel_waiting(daemon, client)
    return [
        Figure(
            f"submit through the API, {CLIENTS} clients, one job per request", rates[1:], "/s",
            1500, at_least=True, slurm="submit",
            note=f"{JOBS:,} jobs submitted to a full cluster, {len(message):,} bytes each. The "
                 "daemon's "
            "one thread (HTTP, checks) dominates: submits that arrive together share one "
            "transaction",
        )
    ]  # fmt: skip


def requests_of_many(runs: int) -> list[Figure]:
    """One array and one batch of 10,000, each in one request."""
    arrays: list[float] = []
    batches: list[float] = []
    with full() as daemon, daemon.client() as client:
        array = request("POST", "/v1/jobs", job(daemon, gpus=1, array=f"0-{MANY - 1}"))
        batch = request("POST", "/v1/jobs/batch", {"jobs": [thin(daemon, n) for n in range(MANY)]})
        for _ in range(runs + 1):
            arrays.append(timed_ms(lambda: client.exchange(array)))
            cancel_waiting(daemon, client)
        for _ in range(runs + 1):
            batches.append(timed_ms(lambda: client.exchange(batch)))
            cancel_waiting(daemon, client)
    return [
        Figure(
            f"an array of {MANY:,} in one request", arrays[1:], "ms", 100, slurm="array",
            note="one row until tasks start; the flush of the commit dominates",
        ),
        Figure(
            f"a batch of {MANY:,} jobs in one request", batches[1:], "ms", 1000,
            note="PostgreSQL dominates: it parses the JSON and writes one row each in job, "
                 "pending, event",
        ),
    ]  # fmt: skip


def cancels(runs: int) -> list[Figure]:
    figures: list[Figure] = []
    with full() as daemon, daemon.client() as client:
        for count, target in ((1_000, 60), (MANY, 400)):
            took: list[float] = []
            batch = request(
                "POST", "/v1/jobs/batch", {"jobs": [thin(daemon, n) for n in range(count)]}
            )
            for _ in range(runs + 1):
                client.exchange(batch)
                daemon.wait_for(client, PENDING=count)
                took.append(timed_ms(lambda: cancel_waiting(daemon, client)))
                daemon.wait_for(client, PENDING=0)
            figures.append(
                Figure(
                    f"cancel {count:,} pending", took[1:], "ms", target, slurm=f"cancel {count}",
                    note="one request by state; PostgreSQL's writing of each job's row and event "
                    "dominates",
                )
            )  # fmt: skip
    return figures


def thin(daemon: Daemon, number: int) -> dict[str, object]:
    """One job of a sweep: the jobs differ in one argument, and a request of 10,000 has no space for
    larger ones."""
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "DATA": "/home/ann/data"}
    return job(daemon, gpus=1, args=["--seed", str(number)], environment=environment)


def cancel_waiting(daemon: Daemon, client: Client) -> None:
    client.call("POST", "/v1/jobs/cancel", {"state": "PENDING"})
