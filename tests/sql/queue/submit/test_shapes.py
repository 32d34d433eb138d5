"""Tasks, totals and shares become nodes, and GPUs, CPUs and memory on each of them."""

from __future__ import annotations

from typing import Any

import pytest

from odcd.records.fields import UNLIMITED_S
from tests.support.builders.jobs import Queue, a_cluster

# h100: 8 GPUs, 64 CPUs, 64000 MiB; l4: 4, 16, 16000; cpu-x86: 0, 16, 32000. The request, and the
# nodes, GPUs, CPUs and MiB on each.
SHAPES: list[tuple[dict[str, Any], tuple[int, int, int, int]]] = [
    # An empty request: one task on one CPU, with the smallest share of memory.
    ({}, (1, 0, 1, 1000)),
    ({"ntasks": 4}, (1, 0, 4, 4000)),
    ({"cpus_per_task": 20}, (1, 0, 20, 20000)),
    ({"ntasks": 64}, (1, 0, 64, 64000)),
    # The fewest nodes that hold the tasks, the same number on each.
    ({"ntasks": 65}, (2, 0, 33, 33000)),
    ({"ntasks": 10, "cpus_per_task": 8}, (2, 0, 40, 40000)),
    ({"ntasks": 8, "ntasks_per_node": 4}, (2, 0, 4, 4000)),
    ({"ntasks": 7, "ntasks_per_node": 4}, (2, 0, 4, 4000)),
    ({"ntasks_per_node": 3}, (1, 0, 3, 3000)),
    ({"node_count": 2, "ntasks": 3}, (2, 0, 2, 2000)),
    ({"node_count": 2, "ntasks": 3, "ntasks_per_node": 2}, (2, 0, 2, 2000)),
    # GPUs include their share of CPUs and memory, rounded down: the smallest of the possible types.
    ({"gpus": 1}, (1, 1, 4, 4000)),
    ({"gpus": 1, "gpu_type": "h100"}, (1, 1, 8, 8000)),
    ({"gpus": 4}, (1, 4, 16, 16000)),
    ({"gpus": 5}, (1, 5, 40, 40000)),
    ({"gpus": 8}, (1, 8, 64, 64000)),
    ({"gpus": 16}, (2, 8, 64, 64000)),
    ({"gpus": 12}, (2, 6, 48, 48000)),
    ({"gpus": 8, "gpu_type": "l4"}, (2, 4, 16, 16000)),
    ({"gpus": 4, "node_count": 2}, (2, 2, 8, 8000)),
    ({"gpus": 8, "gpus_per_node": 4}, (2, 4, 16, 16000)),
    ({"gpus_per_node": 4, "node_count": 2}, (2, 4, 16, 16000)),
    ({"gpus_per_task": 2, "ntasks": 4}, (1, 8, 64, 64000)),
    ({"gpus_per_task": 2, "ntasks": 8}, (2, 8, 64, 64000)),
    ({"gpus_per_task": 2, "gpus": 8}, (1, 8, 64, 64000)),
    ({"gpus_per_task": 2, "gpus_per_node": 4}, (1, 4, 16, 16000)),
    ({"gpus_per_task": 1, "ntasks_per_node": 4, "node_count": 2}, (2, 4, 16, 16000)),
    ({"gpus": 0}, (1, 0, 1, 1000)),
    # Requested values take precedence over shares.
    ({"gpus": 2, "cpus_per_task": 3}, (1, 2, 3, 8000)),
    ({"gpus": 2, "cpus_per_gpu": 3}, (1, 2, 6, 8000)),
    ({"gpus": 2, "cpus_per_gpu": 3, "cpus_per_task": 10}, (1, 2, 10, 8000)),
    ({"gpus": 2, "ntasks": 12}, (1, 2, 12, 8000)),
    ({"gpus": 8, "cpus_per_gpu": 12}, (2, 4, 48, 16000)),
    ({"gpus": 2, "mem_per_node_mib": 500}, (1, 2, 8, 500)),
    ({"gpus": 2, "mem_per_gpu_mib": 700}, (1, 2, 8, 1400)),
    ({"gpus": 8, "mem_per_gpu_mib": 16000}, (2, 4, 16, 64000)),
    ({"ntasks": 3, "mem_per_cpu_mib": 100}, (1, 0, 3, 300)),
    ({"ntasks": 8, "mem_per_cpu_mib": 16000}, (2, 0, 4, 64000)),
    # All the memory of the smallest node that could run it.
    ({"mem_per_node_mib": 0}, (1, 0, 1, 16000)),
    ({"mem_per_node_mib": 0, "gpus": 8}, (1, 8, 64, 64000)),
    ({"mem_per_node_mib": 0, "cpus_per_task": 17}, (1, 0, 17, 64000)),
    # A node list: all of its nodes, or as many as requested.
    ({"node_list": ["h100-1", "h100-2", "h100-1"]}, (2, 0, 1, 1000)),
    ({"node_list": ["h100-1", "h100-2"], "node_count": 1}, (1, 0, 1, 1000)),
    ({"node_list": ["h100-1"], "gpus": 8}, (1, 8, 64, 64000)),
    ({"exclude_nodes": ["l4-1", "l4-2"], "gpus": 1}, (1, 1, 8, 8000)),
]  # fmt: skip


# n to m nodes: the request, the minimum and maximum of nodes, GPUs on each.
RANGES: list[tuple[dict[str, Any], tuple[int, int | None, int]]] = [
    ({"node_count": 1, "node_count_max": 2, "gpus_per_node": 8}, (1, 2, 8)),
    ({"node_count": 2, "node_count_max": 2}, (2, None, 0)),
    ({"node_count": 1, "node_count_max": 9, "ntasks_per_node": 4}, (1, 9, 0)),
    ({"node_count": 1, "node_count_max": 9, "gpus_per_task": 2}, (1, 9, 2)),
    # The maximum that a list or a partition allows.
    ({"node_count": 1, "node_count_max": 9, "node_list": ["h100-1", "h100-2"]}, (1, 2, 0)),
    ({"node_count": 1, "node_count_max": 9, "partitions": ["few"]}, (1, 3, 0)),
    # A total determines the number.
    ({"node_count": 1, "node_count_max": 4, "gpus": 8, "gpus_per_node": 4}, (2, None, 4)),
    ({"node_count": 1, "node_count_max": 4, "ntasks": 65}, (2, None, 0)),
    ({"node_count": 2, "node_count_max": 4, "ntasks": 8}, (2, None, 0)),
    ({"node_count": 1, "node_count_max": 4, "ntasks": 8, "ntasks_per_node": 4}, (2, None, 0)),
    ({"node_count": 2, "node_count_max": 4, "gpus": 8, "gpus_per_task": 2}, (2, None, 4)),
    (
        {"node_count": 1, "node_count_max": 2, "ntasks": 2, "node_list": ["h100-1", "h100-2"]},
        (1, None, 0),
    ),
]


@pytest.fixture
def mixed(queue: Queue) -> Queue:
    a_cluster(queue.sql, h100=2, l4=2, cpu_x86=1)
    return queue


@pytest.mark.parametrize(("ask", "shape"), RANGES, ids=lambda value: str(value))
def test_a_range_of_nodes_stays_open_unless_a_total_chooses(
    mixed: Queue, ask: dict[str, Any], shape: tuple[int, int | None, int]
) -> None:
    mixed.sql.execute(
        "insert into odc.partition (name, all_nodes, max_nodes) values ('few', true, 3)"
    )
    mixed.sql.execute("select odc._regroup_nodes()")
    got = mixed.shape(mixed.submit(**ask))
    assert (got["node_count"], got["node_count_max"], got["gpus_per_node"]) == shape


@pytest.mark.parametrize(
    ("ask", "kept"),
    [
        ({"node_count": 3, "switches": 1}, (1, 300)),
        ({"node_count": 3, "switches": 2, "switches_wait_s": 0}, (2, 0)),
        ({"node_count": 3, "switches": 2, "switches_wait_s": UNLIMITED_S}, (2, None)),
        ({"node_count": 1, "node_count_max": 4, "switches": 3}, (3, 300)),
        ({"node_count": 3, "switches": 3}, (None, None)),
        ({"switches": 1}, (None, None)),
    ],
    ids=lambda value: str(value),
)
def test_a_switches_request_is_stored_where_it_has_an_effect(
    mixed: Queue, ask: dict[str, Any], kept: tuple[int | None, int | None]
) -> None:
    got = mixed.shape(mixed.submit(**ask))
    assert (got["switches"], got["switches_wait_s"]) == kept


@pytest.mark.parametrize(("ask", "shape"), SHAPES, ids=lambda value: str(value))
def test_a_request_becomes_a_shape(
    mixed: Queue, ask: dict[str, Any], shape: tuple[int, int, int, int]
) -> None:
    got = mixed.shape(mixed.submit(**ask))
    assert (
        got["node_count"], got["gpus_per_node"], got["cpus_per_node"], got["mem_per_node_mib"]
    ) == shape  # fmt: skip


def test_memory_follows_the_partitions_default_per_cpu(queue: Queue) -> None:
    queue.sql.execute("update odc.partition set def_mem_per_cpu_mib = 250 where name = 'main'")
    assert queue.shape(queue.submit(cpus_per_task=4))["mem_per_node_mib"] == 1000
    assert queue.shape(queue.submit(gpus=1))["mem_per_node_mib"] == 8000


def test_equal_requests_share_one_shape(queue: Queue) -> None:
    first, second = queue.submit(gpus=2), queue.submit(gpus_per_node=2, node_count=1)
    assert queue.job(first)["shape_id"] == queue.job(second)["shape_id"]
    assert (
        queue.job(first)["shape_id"] != queue.job(queue.submit(gpus=2, exclusive=True))["shape_id"]
    )


@pytest.mark.parametrize(
    ("limits", "ask", "limit"),
    [
        ((None, None), None, UNLIMITED_S),
        ((3600, None), None, 3600),
        ((3600, 60), None, 60),
        ((None, 60), None, 60),
        ((3600, 60), 1800, 1800),
        ((None, 60), UNLIMITED_S, UNLIMITED_S),
    ],
)
def test_the_time_limit_is_the_requested_or_the_partitions_default(
    queue: Queue, limits: tuple[int | None, int | None], ask: int | None, limit: int
) -> None:
    queue.sql.execute(
        "update odc.partition set max_time_limit_s = $1, default_time_limit_s = $2", *limits
    )
    assert queue.job(queue.submit(time_limit_s=ask))["time_limit_s"] == limit


def test_the_default_time_limit_is_the_shortest_of_the_partitions(queue: Queue) -> None:
    queue.sql.execute(
        "insert into odc.partition (name, all_nodes, max_time_limit_s) values ('quick', true, 600)"
    )
    queue.sql.execute("select odc._regroup_nodes()")
    job = queue.job(queue.submit(partitions=["quick", "main", "quick"]))
    assert job["time_limit_s"] == 600
    names = queue.sql.values(
        "select name from unnest($1::integer[]) with ordinality as i (id, n) "
        "join odc.partition using (id) order by n",
        job["partition_ids"],
    )
    assert names == ["quick", "main"]


@pytest.mark.parametrize(
    ("constraint", "features", "fits"),
    [
        (None, [], True),
        ("a", ["a"], True),
        ("a", ["b"], False),
        ("a&b", ["a"], False),
        ("a&b", ["b", "a", "c"], True),
        ("a|b", ["b"], True),
        ("a|b", ["c"], False),
        ("a&b|c", ["c"], True),
        ("a&b|c", ["a"], False),
        ("c|a&b", ["a", "b"], True),
        ("a&b|a&c", ["a", "c"], True),
    ],
)
def test_a_constraint_is_matched_and_before_or(
    queue: Queue, constraint: str | None, features: list[str], fits: bool
) -> None:
    assert queue.sql.value("select odc._matches_features($1, $2)", constraint, features) is fits
