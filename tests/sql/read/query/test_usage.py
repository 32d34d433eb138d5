"""GPU-hours, waits and early ends, from one time to another."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from odcd.api.usage import Usage
from tests.support.builders.dev_servers import Reservations
from tests.support.builders.jobs import ALICE, BOB, NOW, Queue, a_cluster

HOUR = 3600


@pytest.fixture
def reservations(queue: Queue) -> Reservations:
    return Reservations(queue)


def used(
    queue: Queue, *by: str, since: datetime = NOW, until: datetime | None = None, **filters: Any
) -> dict[str, Usage]:
    usage = json.loads(
        queue.sql.value(
            "select odc.list_usage($1, $2::jsonb, $3, $4, $5)",
            list(by), json.dumps(filters), since, until or queue.now, queue.now,
        )
    )  # fmt: skip
    rows = msgspec.convert(usage, list[Usage])
    return {",".join(row.group[word] for word in by): row for row in rows}


def test_usage_counts_time_within_the_span_including_running_jobs(queue: Queue) -> None:
    """LIF-07: the fields are kept forever."""
    job = queue.submit(gpus_per_node=2, time_limit_s=9 * HOUR)
    queue.start()
    queue.move(HOUR)
    other = queue.submit(BOB, gpus_per_node=1, time_limit_s=9 * HOUR)
    queue.start()
    queue.move(HOUR)
    rows = used(queue, "user")
    assert [(name, row.jobs, row.gpu_s) for name, row in rows.items()] == [
        ("alice", 1, 4 * HOUR), ("bob", 1, HOUR),
    ]  # fmt: skip
    queue.end(job)
    queue.end(other, exit_code=1)
    queue.move(HOUR)
    assert used(queue, "user")["alice"].gpu_s == 4 * HOUR
    assert used(queue, "user")["bob"].failed == 1
    half = NOW + timedelta(minutes=30)
    assert used(queue, "user", since=half, until=half + timedelta(hours=1))["alice"].gpu_s == (
        2 * HOUR
    )
    both = used(queue, "user", since=half, until=half + timedelta(hours=1))["bob"]
    assert (both.gpu_s, both.failed, both.began) == (HOUR / 2, 0, 1)
    assert used(queue, "user", since=queue.now, until=queue.now + timedelta(1)) == {}


def test_usage_is_grouped_and_filtered(queue: Queue) -> None:
    a_cluster(queue.sql, h100=2, l4=1)
    queue.submit(gpus_per_node=1, gpu_type="h100")
    queue.submit(gpus_per_node=1, gpu_type="l4")
    queue.submit(BOB, gpus_per_node=1, gpu_type="l4")
    queue.start()
    queue.move(HOUR)
    rows = used(queue, "user", "gpu_type")
    assert {name: row.gpu_s for name, row in rows.items()} == {
        "alice,h100": HOUR, "alice,l4": HOUR, "bob,l4": HOUR,
    }  # fmt: skip
    assert set(used(queue, "account", "qos", "partition", "kind")) == {"default,normal,main,batch"}
    assert set(used(queue, "user", gpu_type=["L4"], user=["bob", "carol"])) == {"bob"}
    assert used(queue, "user", account=["none"]) == {}
    assert used(queue, "user", kind="reservation") == {}


def test_waits_end_when_the_job_started(queue: Queue) -> None:
    """LIF-07: from the submit, or the requested begin time."""
    jobs = [
        queue.submit(gpus_per_node=1, begin_at=NOW + timedelta(minutes=minutes))
        for minutes in (0, 10, 50)
    ]
    queue.submit(BOB, gpus_per_node=1, begin_at=NOW + timedelta(hours=9))
    queue.move(HOUR)
    queue.sweep()
    assert queue.start() == jobs
    [row] = used(queue, "user", until=queue.now + timedelta(seconds=1)).values()
    assert row.wait_s is not None
    assert (row.began, row.wait_s.mean, row.wait_s.median, row.wait_s.most) == (
        3, 40 * 60, 50 * 60, HOUR,
    )  # fmt: skip


def test_a_reservation_that_ends_early_gives_back_the_rest(
    reservations: Reservations, queue: Queue
) -> None:
    """LIF-07: early cancel = ended < expires."""
    dev_server = reservations.reserve(ALICE, hours=8, gpus=4)
    queue.move(300)
    queue.start()
    queue.move(300)
    reservations.facts(dev_server, "started", 0)
    queue.move(2 * HOUR)
    queue.cancel(dev_server)
    reservations.facts(dev_server, "exited", 0)
    queue.move(60)
    row = used(queue, "user")["alice"]
    assert row.wait_s is not None
    assert (row.began, row.wait_s.median, row.wait_s.most) == (1, 600, 600)
    assert (row.early, row.early_gpu_s, row.failed) == (1, 4 * 6 * HOUR, 0)
    assert row.gpu_s == 4 * (2 * HOUR + 300)
    assert used(queue, "kind", since=queue.now - timedelta(seconds=30)) == {}
