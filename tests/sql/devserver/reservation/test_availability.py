"""The resources to reserve, by type, and the expected time."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest

from tests.support.builders.dev_servers import HOUR, Reservations
from tests.support.builders.jobs import NOW, Queue, a_cluster


@pytest.fixture
def reservations(queue: Queue) -> Reservations:
    a_cluster(queue.sql, h100=8, l4=2)
    return Reservations(queue)


def types(reservations: Reservations) -> dict[str, dict[str, Any]]:
    types_json = json.loads(
        reservations.sql.value("select odc.list_availability($1)", reservations.queue.now)
    )
    return {one["gpu_type"]: one for one in types_json}


def start_of(reservations: Reservations, job_id: int) -> float:
    """Seconds from the start of the test."""
    planned = reservations.show(job_id)["planned_start_at"]
    return (datetime.fromisoformat(planned) - NOW).total_seconds()


def test_the_types_of_gpu_dev_are_known(reservations: Reservations) -> None:
    """CLI-04"""
    known = set(reservations.sql.values("select name from odc.gpu_type"))
    assert known >= {
        "b200", "h200", "h100", "a100", "a10g", "t4", "l4", "t4-small", "cpu-arm", "cpu-x86",
    }  # fmt: skip


def test_the_types_have_the_efa_devices_of_their_instances(reservations: Reservations) -> None:
    """MNE-13, MNE-26: a wrong number makes the pod unschedulable; t4 has none and uses TCP."""
    rows = reservations.sql.rows("select name, efa_per_node, instance_type from odc.gpu_type")
    count = {row["name"]: (row["efa_per_node"], row["instance_type"]) for row in rows}
    assert count["h100"] == (32, "p5.48xlarge")
    assert count["h200"] == (16, "p5en.48xlarge"), "p5e has 32"
    assert count["b200"] == (8, "p6-b200.48xlarge")
    assert count["a100"] == (4, "p4d.24xlarge")
    assert (count["l4"][0], count["a10g"][0]) == (1, 1)
    for name in ("t4", "t4-small", "cpu-x86", "cpu-arm"):
        assert count[name][0] == 0, name


def test_the_largest_reservation_is_whole_free_nodes_or_part_of_one(
    reservations: Reservations,
) -> None:
    """SCH-14: at most six nodes, the most that a reservation can request."""
    assert types(reservations)["h100"]["max_reservable"] == 6 * 8
    for _ in range(4):
        reservations.active(gpus=1, gpu_type="h100")
        reservations.active(gpus=8, gpu_type="h100")
    assert types(reservations)["h100"]["max_reservable"] == 3 * 8
    for _ in range(3):
        reservations.active(gpus=8, gpu_type="h100")
    assert types(reservations)["h100"]["max_reservable"] == 4


def test_free_gpus_are_reported(reservations: Reservations, queue: Queue) -> None:
    """SCH-16: updated at once after a start or an end, without a refresh."""
    assert types(reservations)["h100"]["free"] == 64
    dev_server = reservations.active(gpus=8, gpu_type="h100")
    assert types(reservations)["h100"]["free"] == 56
    queue.cancel(dev_server)
    reservations.facts(dev_server, "exited", 0)
    assert types(reservations)["h100"]["free"] == 64


def test_an_expected_start_depends_on_the_type_and_the_queue(
    reservations: Reservations, queue: Queue
) -> None:
    """SCH-05, BUG-05: free GPUs of different nodes are not added up."""
    for hours in (1, 2):
        for _ in range(4):
            reservations.active(gpus=5, hours=hours, gpu_type="h100")
    for _ in range(2):
        reservations.active(gpus=4, hours=9, gpu_type="l4")
    first = [reservations.reserve(gpus=8, hours=4, gpu_type="h100") for _ in range(4)]
    queue.move(60)
    late = reservations.reserve(gpus=8, hours=1, gpu_type="h100")
    queue.sql.execute("update odc.policy set plan_depth = 20, ordering = 'fifo'")
    queue.start()
    grace = 120
    assert {start_of(reservations, job) for job in first} == {HOUR + grace}
    assert start_of(reservations, late) == 2 * HOUR + grace
