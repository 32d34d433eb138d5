"""Nodes for profiling are kept for those who ask for them, as long as there is room elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.builders.dev_servers import Reservations
from tests.support.builders.jobs import Queue, a_cluster

H100: dict[str, Any] = {"gpu_type": "h100", "gpus": 8, "cpus": 192, "mem_mib": 2_000_000}


@pytest.fixture
def boxes(queue: Queue) -> Reservations:
    """h100-0, which comes first, is for profiling; h100-1 and h100-2 are not."""
    first = {**H100, "name": "h100-0", "declared": True, "features": ["nsight"]}
    a_cluster(queue.sql, h100=2, more=[first])
    return Reservations(queue)


def nodes(boxes: Reservations, *jobs: int) -> list[list[str]]:
    return [boxes.show(job)["node_names"] for job in jobs]


def test_others_come_there_only_when_nothing_else_has_room(
    boxes: Reservations, queue: Queue
) -> None:
    """SCH-21, POD-13, PRF-02: which nodes they are, their label says."""
    fill = [boxes.reserve(gpus=8), boxes.reserve(gpus=7)]
    queue.start()
    assert sorted(nodes(boxes, *fill)) == [["h100-1"], ["h100-2"]]
    part, late = boxes.reserve(gpus=1), boxes.reserve(gpus=1)
    queue.start()
    assert nodes(boxes, part) != [["h100-0"]], "the last GPU elsewhere goes first"
    assert nodes(boxes, late) == [["h100-0"]], "and nobody waits while one is free"


def test_who_asks_for_them_has_no_others(boxes: Reservations, queue: Queue) -> None:
    """PRF-01: nsight=true is hard."""
    first = boxes.reserve(gpus=8, constraint="nsight")
    second = boxes.reserve(gpus=1, constraint="nsight")
    queue.start()
    assert nodes(boxes, first, second) == [["h100-0"], []]
    assert boxes.status(second) == "queued"


def test_a_gang_may_have_them_among_its_nodes(boxes: Reservations, queue: Queue) -> None:
    box = boxes.reserve(gpus=8, nodes=3)
    queue.start()
    assert nodes(boxes, box) == [["h100-0", "h100-1", "h100-2"]]


def test_one_that_waits_is_promised_whichever_comes_first(
    boxes: Reservations, queue: Queue
) -> None:
    """A job that is kept back by others takes a node for profiling if that is free sooner."""
    for hours, constraint in ((8, None), (7, None), (1, "nsight")):
        boxes.reserve(gpus=8, hours=hours, constraint=constraint)
    queue.start()
    late = boxes.reserve(gpus=8)
    queue.start()
    planned = boxes.show(late)["planned_start_at"]
    assert planned is not None
    assert planned < "2026-01-01T01:10", planned
