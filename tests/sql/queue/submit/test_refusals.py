"""Impossible requests are refused at submit, with a code, the values, and a hint."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from odcd.records.fields import UNLIMITED_S
from odcd.records.job import Identity
from tests.support.builders.jobs import ALICE, NOW, ROOT, Queue, a_cluster, a_job, submit
from tests.support.harness.database import Sql

HOUR = 3600


@pytest.fixture
def mixed(queue: Queue) -> Queue:
    """Nodes of several types and partitions; `main` has all, for at most 30 days."""
    a_cluster(queue.sql, h100=2, l4=1, cpu_x86=2)
    queue.sql.execute("update odc.node set features = '{nvme,ib}' where name = 'h100-1'")
    queue.sql.execute(
        """
        insert into odc.partition (name, state, all_nodes, max_time_limit_s, max_nodes)
        values ('short', 'UP', true, 3600, 1), ('closed', 'INACTIVE', true, null, null),
               ('emptying', 'DRAIN', true, null, null), ('stopped', 'DOWN', true, null, null),
               ('none', 'UP', false, null, null)
        """
    )
    queue.sql.execute("select odc._regroup_nodes()")
    return queue


REFUSALS: dict[str, tuple[dict[str, Any], str, str, str]] = {
    # name: the request, the code, text of the message, text of the hint
    "partition": (
        {"partitions": ["gpu"]},
        "OD001",
        '"gpu" does not exist',
        "main, none, short, stopped",
    ),
    "one of two partitions": ({"partitions": ["main", "x"]}, "OD001", '"x" does not exist', "main"),
    "inactive partition": ({"partitions": ["closed"]}, "OD012", '"closed" is INACTIVE', "UP"),
    "draining partition": ({"partitions": ["emptying"]}, "OD012", '"emptying" is DRAIN', "UP"),
    "account": ({"account": "physics"}, "OD002", '"physics" does not exist', "default"),
    "qos": ({"qos": "gold"}, "OD004", '"gold" does not exist', "normal"),
    "gpu type": ({"gpu_type": "h900", "gpus": 1}, "OD005", '"h900" does not exist', "h100"),
    "gpu type on no node": (
        {"gpu_type": "b200", "gpus": 1},
        "OD008",
        '"b200"',
        "cpu-x86, h100, l4",
    ),
    "listed node": ({"node_list": ["h100-9"]}, "OD007", '"h100-9" does not exist', "h100-1"),
    "excluded node": ({"exclude_nodes": ["x", "h100-1"]}, "OD007", '"x" does not exist', "h100-1"),
    "too many gpus on a node": (
        {"gpus_per_node": 16},
        "OD008",
        "16 GPUs on one node, and the largest node has 8 GPUs, 64 CPUs and 64000M of memory",
        "odcctl nodes",
    ),
    "too many gpus of a type": (
        {"gpus_per_node": 5, "gpu_type": "l4"},
        "OD008",
        "the largest node has 4 GPUs, 16 CPUs and 16000M of memory",
        "less",
    ),
    "too many cpus": ({"cpus_per_task": 65}, "OD008", "65 CPUs", "less"),
    "too much memory": ({"mem_per_node_mib": 70_000}, "OD008", "70000M of memory", "less"),
    "huge": (
        {"ntasks_per_node": 1_000_000, "cpus_per_task": 1_000_000},
        "OD008",
        "2147483647 CPUs",
        "less",
    ),
    "too many nodes": (
        {"node_count": 3, "gpus_per_node": 8},
        "OD008",
        "it requests 3 nodes with 8 GPUs",
        "less",
    ),
    "too few nodes of one type": (
        {"node_count": 3, "gpus_per_node": 4},
        "OD008",
        "it requests 3 nodes, and of h100, l4 there are at most 2",
        "have one type",
    ),
    "a total of gpus on an open number of nodes": (
        {"node_count": 1, "node_count_max": 2, "gpus": 8},
        "OD010",
        "8 GPUs in total on 1 to 2 nodes",
        "--gpus-per-node",
    ),
    "a total outside the range of nodes": (
        {"node_count": 1, "node_count_max": 2, "gpus": 8, "gpus_per_node": 1},
        "OD010",
        "it needs 8 nodes, but requests 1 to 2",
        "Leave the number of nodes out",
    ),
    "fewer nodes than the range": (
        {"node_count": 2, "node_count_max": 4, "gpus": 8, "gpus_per_node": 8},
        "OD010",
        "it needs 1 nodes, but requests 2 to 4",
        "Leave the number of nodes out",
    ),
    "no such feature": ({"constraint": "tape"}, "OD008", '"tape"', "ib, nvme"),
    "features on different nodes": (
        {"constraint": "nvme&ib", "gpu_type": "l4"},
        "OD008",
        '"nvme&ib"',
        "l4",
    ),
    "listed but excluded": (
        {"node_list": ["h100-1"], "exclude_nodes": ["h100-1"]},
        "OD008",
        "is among those listed (h100-1) and is not excluded",
        "h100",
    ),
    "partition without nodes": (
        {"partitions": ["none"]},
        "OD008",
        'partition "none" has no nodes',
        "h100",
    ),
    "parentheses": ({"constraint": "(nvme|ib)&x"}, "OD016", "(nvme|ib)&x", "not supported yet"),
    "counts of features": ({"constraint": "nvme*2"}, "OD016", "nvme*2", "not supported yet"),
    "broken constraint": ({"constraint": "nvme&&ib"}, "OD010", "nvme&&ib", "a100&nvme|h100"),
    "time limit": (
        {"time_limit_s": 31 * 86400},
        "OD009",
        '31-00:00:00 exceeds the limit of 30-00:00:00 of partition "main"',
        "at most 30-00:00:00",
    ),
    "no time limit": ({"time_limit_s": UNLIMITED_S}, "OD009", "UNLIMITED exceeds", "at most"),
    "time limit of one of two partitions": (
        {"partitions": ["main", "short"], "time_limit_s": 2 * HOUR},
        "OD009",
        'partition "short"',
        "at most 1:00:00",
    ),
    "nodes of a partition": (
        {"partitions": ["short"], "node_count": 2},
        "OD009",
        '2 nodes exceed the limit of 1 of partition "short"',
        "fewer",
    ),
    "gpus that do not divide": (
        {"gpus": 9},
        "OD010",
        "9 GPUs cannot be split evenly over 2 nodes",
        "8 or 10",
    ),
    "gpus that do not divide over nodes": (
        {"gpus": 5, "node_count": 2},
        "OD010",
        "5 GPUs cannot be split evenly over 2 nodes",
        "4 or 6",
    ),
    "gpus against gpus per node": (
        {"gpus": 8, "gpus_per_node": 2, "node_count": 2},
        "OD010",
        "8 GPUs in total do not match 2 on each of 2 nodes",
        "Leave",
    ),
    "gpus not a multiple of gpus per node": (
        {"gpus": 7, "gpus_per_node": 2},
        "OD010",
        "gpus 7",
        "8 or 6",
    ),
    "fewer gpus than gpus per node": (
        {"gpus": 2, "gpus_per_node": 4},
        "OD010",
        "--gpus 2 is not a multiple of --gpus-per-node (or --gres) 4",
        "Request 4, or leave one of the two out.",
    ),
    "gpus not a multiple of gpus per task": (
        {"gpus": 7, "gpus_per_task": 2},
        "OD010",
        "gpus 7",
        "8 or 6",
    ),
    "gpus per task against gpus per node": (
        {"gpus_per_task": 2, "gpus_per_node": 2, "ntasks_per_node": 2},
        "OD010",
        "2 tasks with 2 GPUs each",
        "Leave",
    ),
    "fewer tasks than nodes": (
        {"ntasks": 1, "node_count": 2},
        "OD010",
        "1 tasks cannot run on 2 nodes",
        "1 nodes",
    ),
    "more tasks than places": (
        {"ntasks": 9, "node_count": 2, "ntasks_per_node": 4},
        "OD010",
        "9 tasks do not fit on 2 nodes",
        "3 nodes",
    ),
    "memory twice": (
        {"mem_per_node_mib": 1, "mem_per_cpu_mib": 1},
        "OD010",
        "more than one way",
        "--mem",
    ),
    "cpus per gpu without gpus": ({"cpus_per_gpu": 4}, "OD010", "no GPU", "--gpus"),
    "memory per gpu without gpus": ({"mem_per_gpu_mib": 4}, "OD010", "no GPU", "--gpus"),
    "more nodes than listed": (
        {"node_list": ["h100-1"], "node_count": 2},
        "OD016",
        "needs 2 nodes, but its node list names only 1",
        "at least",
    ),
    "deadline in the past": (
        {"deadline_at": NOW - timedelta(hours=1)},
        "OD010",
        "2025-12-31T23:00:00Z cannot be met",
        "Move",
    ),
    "deadline before it could end": (
        {"deadline_at": NOW + timedelta(hours=1), "time_limit_s": 2 * HOUR},
        "OD010",
        "2026-01-01T02:00:00Z at the",
        "shorter",
    ),
    "deadline before its begin and limit": (
        {
            "begin_at": NOW + timedelta(hours=3),
            "deadline_at": NOW + timedelta(hours=4),
            "time_limit_s": 2 * HOUR,
        },
        "OD010",
        "2026-01-01T05:00:00Z",
        "Move",
    ),
    "negative nice": ({"nice": -1}, "OD013", "nice value -1", "--nice"),
    "unknown job": (
        {"dependency": "afterok:999999"},
        "OD011",
        "job 999999, which does not exist",
        "queue",
    ),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_impossible_requests_are_refused_with_their_values_and_a_hint(
    mixed: Queue, name: str
) -> None:
    fields, code, message, hint = REFUSALS[name]
    error = mixed.refused(**fields)
    assert (error.code, message in error.message, hint in (error.hint or "")) == (
        code,
        True,
        True,
    ), (
        error.message,
        error.hint,
    )


def test_a_refused_request_writes_nothing(mixed: Queue) -> None:
    tables = ("job", "pending", "event", "job_text", "array_job", "dependency", "idempotency")
    before = [mixed.sql.value(f"select count(*) from odc.{table}") for table in tables]
    mixed.refused(gpus=1, account="physics")
    mixed.refused(array="0-9", dependency="afterok:999999")
    assert [mixed.sql.value(f"select count(*) from odc.{table}") for table in tables] == before


def test_before_any_node_has_registered_the_refusal_says_so(sql: Sql) -> None:
    error = Queue(sql).refused(gpus=1)
    assert error.code == "OD008"
    assert error.message == "no node could ever run it: no node has registered"
    assert "--node" in (error.hint or "")


@pytest.mark.parametrize(("who", "nice"), [(ROOT, -100), (ALICE, 100)])
def test_only_operators_may_set_a_negative_nice_value(
    queue: Queue, who: Identity, nice: int
) -> None:
    assert queue.pending(queue.submit(who, nice=nice))["nice"] == nice


def test_a_stopped_partition_accepts_jobs(mixed: Queue) -> None:
    job = mixed.submit(partitions=["stopped"])
    assert job not in mixed.start()


def test_jobs_for_nodes_that_are_down_are_accepted(queue: Queue) -> None:
    queue.sql.execute("update odc.node set state = 'DOWN'")
    queue.sql.execute("select odc._regroup_nodes()")
    assert queue.submit(gpus=8) not in queue.start()


def test_one_refused_job_refuses_its_request_and_names_itself(queue: Queue) -> None:
    answers = submit(queue.sql, a_job(), a_job(account="physics"), a_job())
    assert [(a.job_id, a.code) for a in answers] == [(None, None), (None, "OD002"), (None, None)]


def test_an_impossible_switches_request_without_a_timeout_is_refused(queue: Queue) -> None:
    a_cluster(queue.sql, h100=4)
    queue.sql.execute("update odc.node set topology = array['spine', name]")
    wish: dict[str, Any] = {"node_count": 3, "switches": 2, "gpu_type": "h100", "gpus_per_node": 1}
    error = queue.refused(**wish, switches_wait_s=UNLIMITED_S)
    assert error.code == "OD008"
    assert "it needs 3 nodes, and at most 2 are in so few blocks" in error.message
    queue.submit(**wish)
    queue.sql.execute("update odc.node set topology = '{spine,a}' where name <> 'h100-1'")
    queue.submit(**wish, switches_wait_s=UNLIMITED_S)


def test_a_gang_of_whole_nodes_needs_them_in_one_efa_domain(queue: Queue) -> None:
    queue.sql.execute("update odc.node set efa_domain = name")
    queue.sql.execute("select odc._regroup_nodes()")
    assert "EFA domain" in queue.refused(node_count=2, gpus_per_node=8).message
    queue.submit(node_count=2, gpus_per_node=4)
