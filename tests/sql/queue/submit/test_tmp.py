"""--tmp: a job runs on nodes with so much disk space, and is refused if there are none."""

from __future__ import annotations

import json

import pytest

from odcd.errors import NeverFits
from tests.support.builders.jobs import NOW, Queue
from tests.support.harness.database import Sql

SIZES = {"big": 900_000, "small": 100_000, "unknown": None}


@pytest.fixture
def queue(sql: Sql) -> Queue:
    register(sql, SIZES)
    return Queue(sql)


def register(sql: Sql, sizes: dict[str, int | None]) -> None:
    body = [
        {"name": name, "gpu_type": "h100", "gpus": 8, "cpus": 64, "mem_mib": 64_000, "tmp_mib": tmp}
        for name, tmp in sizes.items()
    ]
    sql.execute("select odc.register_nodes(0, $1::jsonb, true, $2)", json.dumps(body), NOW)


def places(queue: Queue) -> dict[int, str]:
    rows = queue.sql.rows(
        "select a.job_id, n.name from odc.allocation as a join odc.node as n on n.id = a.node_id"
    )
    return {row["job_id"]: row["name"] for row in rows}


def test_a_job_starts_on_a_node_with_enough_disk_space(queue: Queue) -> None:
    first, second = (queue.submit(gpus=8, tmp_mib=500_000) for _ in range(2))
    assert queue.start() == [first]
    assert places(queue) == {first: "big"}
    third = queue.submit(gpus=8, tmp_mib=50_000)
    assert queue.start() == [third]
    assert places(queue)[third] == "small"
    assert queue.state(second) == "PENDING"


def test_a_job_that_asks_for_more_disk_space_than_any_node_has_is_refused(queue: Queue) -> None:
    refused = queue.refused(gpus=1, tmp_mib=1_000_000)
    assert isinstance(refused, NeverFits)
    assert "has 1000000M of disk space" in refused.message
    assert "The most disk space of a node is 900000M" in str(refused.hint)


def test_jobs_that_differ_in_their_disk_space_have_different_shapes(queue: Queue) -> None:
    for more in ({}, {"tmp_mib": 5}, {"tmp_mib": 5}):
        queue.submit(gpus=1, **more)
    shapes = queue.sql.values("select shape_id from odc.job order by id")
    assert shapes[0] != shapes[1] == shapes[2]


def test_the_executor_learns_of_the_request(queue: Queue) -> None:
    job = queue.submit(gpus=1, tmp_mib=70_000)
    queue.start()
    text = queue.sql.value("select odc.dispatch_of($1)::text", job)
    assert json.loads(text)["tmp_mib"] == 70_000


def test_a_node_whose_disk_space_changes_is_planned_with_its_new_size(queue: Queue) -> None:
    register(queue.sql, {**SIZES, "big": 200_000})
    assert isinstance(queue.refused(gpus=1, tmp_mib=500_000), NeverFits)
