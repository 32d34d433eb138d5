"""Profiling nodes are kept for jobs that request them, while other nodes have room."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.builders.dev_servers import Reservations
from tests.support.builders.jobs import Queue, a_cluster

H100: dict[str, Any] = {"gpu_type": "h100", "gpus": 8, "cpus": 192, "mem_mib": 2_000_000}


@pytest.fixture
def reservations(queue: Queue) -> Reservations:
    """h100-0, which comes first, is for profiling; h100-1 and h100-2 are not."""
    first = {**H100, "name": "h100-0", "declared": True, "features": ["nsight"]}
    a_cluster(queue.sql, h100=2, more=[first])
    return Reservations(queue)


def nodes(reservations: Reservations, *jobs: int) -> list[list[str]]:
    return [reservations.show(job)["node_names"] for job in jobs]


def test_other_jobs_use_profiling_nodes_only_when_no_other_node_has_room(
    reservations: Reservations, queue: Queue
) -> None:
    """SCH-21, POD-13, PRF-02: their label marks the profiling nodes."""
    fill = [reservations.reserve(gpus=8), reservations.reserve(gpus=7)]
    queue.start()
    assert sorted(nodes(reservations, *fill)) == [["h100-1"], ["h100-2"]]
    part, late = reservations.reserve(gpus=1), reservations.reserve(gpus=1)
    queue.start()
    assert nodes(reservations, part) != [["h100-0"]], "the last GPU elsewhere goes first"
    assert nodes(reservations, late) == [["h100-0"]], "and no job waits while one is free"


def test_a_job_that_requests_profiling_nodes_gets_no_others(
    reservations: Reservations, queue: Queue
) -> None:
    """PRF-01: nsight=true is a requirement."""
    first = reservations.reserve(gpus=8, constraint="nsight")
    second = reservations.reserve(gpus=1, constraint="nsight")
    queue.start()
    assert nodes(reservations, first, second) == [["h100-0"], []]
    assert reservations.status(second) == "queued"


def test_a_gang_may_use_profiling_nodes(reservations: Reservations, queue: Queue) -> None:
    dev_server = reservations.reserve(gpus=8, nodes=3)
    queue.start()
    assert nodes(reservations, dev_server) == [["h100-0", "h100-1", "h100-2"]]


def test_a_waiting_job_is_planned_on_whichever_node_is_free_first(
    reservations: Reservations, queue: Queue
) -> None:
    """A job behind others is planned on a profiling node if that is free sooner."""
    for hours, constraint in ((8, None), (7, None), (1, "nsight")):
        reservations.reserve(gpus=8, hours=hours, constraint=constraint)
    queue.start()
    late = reservations.reserve(gpus=8)
    queue.start()
    planned = reservations.show(late)["planned_start_at"]
    assert planned is not None
    assert planned < "2026-01-01T01:10", planned
