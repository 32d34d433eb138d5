"""The resources to reserve, by type, and the expected time."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest

from tests.support.builders.dev_servers import HOUR, Reservations
from tests.support.builders.jobs import NOW, Queue, a_cluster


@pytest.fixture
def boxes(queue: Queue) -> Reservations:
    a_cluster(queue.sql, h100=8, l4=2)
    return Reservations(queue)


def types(boxes: Reservations) -> dict[str, dict[str, Any]]:
    told = json.loads(boxes.sql.value("select odc.list_availability($1)", boxes.queue.now))
    return {one["gpu_type"]: one for one in told}


def start_of(boxes: Reservations, job_id: int) -> float:
    """Seconds from the beginning."""
    told = boxes.show(job_id)["planned_start_at"]
    return (datetime.fromisoformat(told) - NOW).total_seconds()


def test_the_types_of_gpu_dev_are_known(boxes: Reservations) -> None:
    """CLI-04"""
    known = set(boxes.sql.values("select name from odc.gpu_type"))
    assert known >= {
        "b200", "h200", "h100", "a100", "a10g", "t4", "l4", "t4-small", "cpu-arm", "cpu-x86",
    }  # fmt: skip


def test_the_most_that_one_can_have_is_whole_free_nodes_or_part_of_one(boxes: Reservations) -> None:
    """SCH-14: of six nodes at most, which is as many as one can ask for."""
    assert types(boxes)["h100"]["max_reservable"] == 6 * 8
    for _ in range(4):
        boxes.active(gpus=1, gpu_type="h100")
        boxes.active(gpus=8, gpu_type="h100")
    assert types(boxes)["h100"]["max_reservable"] == 3 * 8
    for _ in range(3):
        boxes.active(gpus=8, gpu_type="h100")
    assert types(boxes)["h100"]["max_reservable"] == 4


def test_what_is_free_is_told_as_it_is(boxes: Reservations, queue: Queue) -> None:
    """SCH-16: updated at once after a start or an end, without a refresh."""
    assert types(boxes)["h100"]["free"] == 64
    box = boxes.active(gpus=8, gpu_type="h100")
    assert types(boxes)["h100"]["free"] == 56
    queue.cancel(box)
    boxes.facts(box, "exited", 0)
    assert types(boxes)["h100"]["free"] == 64


def test_when_one_starts_goes_by_its_own_type_and_by_who_is_before_it(
    boxes: Reservations, queue: Queue
) -> None:
    """SCH-05, BUG-05: and by single nodes, whose free GPUs are not added up."""
    for hours in (1, 2):
        for _ in range(4):
            boxes.active(gpus=5, hours=hours, gpu_type="h100")
    for _ in range(2):
        boxes.active(gpus=4, hours=9, gpu_type="l4")
    first = [boxes.reserve(gpus=8, hours=4, gpu_type="h100") for _ in range(4)]
    queue.move(60)
    late = boxes.reserve(gpus=8, hours=1, gpu_type="h100")
    queue.sql.execute("update odc.policy set plan_depth = 20, ordering = 'fifo'")
    queue.start()
    grace = 120
    assert {start_of(boxes, job) for job in first} == {HOUR + grace}
    assert start_of(boxes, late) == 2 * HOUR + grace
