"""Nodes with another manager: their states, their foreign use, and the effect on jobs there."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odcd.errors import WrongState
from tests.support.builders.jobs import NOW, ROOT, Queue
from tests.support.harness.database import Sql

GRACE = timedelta(seconds=120)


def register(queue: Queue, **nodes: dict[str, Any]) -> None:
    """Nodes n1=…, each h100:8 with 64 CPUs and 64000 MiB by default."""
    body = [
        {"name": name, "gpu_type": "h100", "gpus": 8, "cpus": 64, "mem_mib": 64_000, **more}
        for name, more in nodes.items()
    ]
    queue.sql.execute(
        "select odc.register_nodes(0, $1::jsonb, true, $2)", json.dumps(body), queue.now
    )


def node(queue: Queue, name: str = "n1") -> dict[str, Any]:
    return queue.sql.row(
        "select n.state::text, n.reason, f.gpus, f.cpus, f.mem_mib, f.up from odc.node as n "
        "join odc.node_free as f on f.node_id = n.id where n.name = $1",
        name,
    )


@pytest.fixture
def queue(sql: Sql) -> Queue:
    sql.execute("update odc.partition set policy = 'fifo'")
    return Queue(sql)


def test_gpus_used_outside_odc_are_not_allocated(queue: Queue) -> None:
    register(queue, n1={"foreign_gpus": 3, "foreign_cpus": 10, "foreign_mem_mib": 4000})
    whole = queue.submit(gpus=8)
    part = queue.submit(gpus=5)
    assert queue.start() == [part]
    assert queue.contradictions() == []
    explanation = json.loads(queue.sql.value("select odc.explain_job($1, $2)", whole, queue.now))
    assert any(
        "3 GPUs, 10 CPUs and 4000M of memory of n1 are used by programs outside" in cause["text"]
        for cause in explanation["why"]
    )
    queue.end(part)
    register(queue, n1={})
    assert queue.start() == [whole]
    assert queue.contradictions() == []


def test_use_outside_odc_never_takes_allocated_gpus(queue: Queue) -> None:
    register(queue, n1={})
    job = queue.submit(gpus=6)
    assert queue.start() == [job]
    register(queue, n1={"foreign_gpus": 4, "foreign_cpus": 64, "foreign_mem_mib": 64_000})
    assert queue.contradictions() == []
    assert node(queue)["gpus"] == 0
    queue.end(job)
    assert node(queue)["gpus"] == 6
    register(queue, n1={"foreign_gpus": 4})
    assert (node(queue)["gpus"], queue.contradictions()) == (4, [])


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("others"), st.integers(0, 8), st.integers(0, 64)),
            st.tuples(st.just("submit"), st.integers(0, 8), st.integers(1, 32)),
            st.tuples(st.just("end"), st.integers(0, 5), st.just(0)),
            st.tuples(st.just("size"), st.sampled_from((4, 8)), st.sampled_from((32, 64))),
        ),
        max_size=12,
    )
)
def test_the_books_stay_consistent_under_any_outside_use(
    sql: Sql, steps: list[tuple[str, int, int]]
) -> None:
    with sql.trial():
        queue = Queue(sql)
        gpus, cpus, size = 0, 0, {"gpus": 8, "cpus": 64}
        for kind, first, second in steps:
            queue.move(1)
            if kind == "others":
                gpus, cpus = first, second
            elif kind == "size":
                size = {"gpus": first, "cpus": second}
            register(
                queue,
                n1={**size, "foreign_gpus": min(gpus, size["gpus"]),
                    "foreign_cpus": min(cpus, size["cpus"])},
            )  # fmt: skip
            # A node in use keeps its size until it is idle.
            there = sql.row("select gpus, cpus from odc.node")
            if kind == "submit" and first <= there["gpus"]:
                queue.submit(gpus=first, cpus_per_task=min(second, there["cpus"]))
                queue.start()
            running = sql.values("select job_id from odc.running order by 1")
            if kind == "end" and first < len(running):
                queue.end(running[first])
            assert queue.contradictions() == []


def test_a_cordoned_node_drains_and_comes_back(queue: Queue) -> None:
    register(queue, n1={}, n2={})
    register(queue, n1={"state": "DRAIN", "reason": "cordoned"}, n2={})
    assert (node(queue)["state"], node(queue)["reason"], node(queue)["up"]) == (
        "DRAIN", "cordoned", False,
    )  # fmt: skip
    register(queue, n1={}, n2={})
    assert (node(queue)["state"], node(queue)["reason"]) == ("UP", None)
    assert queue.sql.values("select kind from odc.event where kind like 'node_%' order by id") == [
        "node_drain", "node_up",
    ]  # fmt: skip


def test_a_cordoned_node_cannot_be_resumed_in_odc(queue: Queue) -> None:
    """Found: it accepted jobs that its cluster would not start, until the daemon restarted."""
    register(queue, n1={"state": "DRAIN", "reason": "cordoned"})
    resume = "select odc.set_node_state($1::jsonb, array['n1'], 'UP', null, $2)"
    root = json.dumps({"user": ROOT.user, "uid": ROOT.uid, "operator": True})
    with pytest.raises(WrongState, match="by the cluster: cordoned"):
        queue.sql.execute(resume, root, queue.now)
    assert node(queue)["state"] == "DRAIN"
    register(queue, n1={})
    assert node(queue)["state"] == "UP"


def test_a_node_used_outside_odc_is_not_idle(queue: Queue) -> None:
    register(queue, n1={"foreign_gpus": 3, "foreign_cpus": 10}, n2={})
    nodes = json.loads(queue.sql.value("select odc.list_nodes($1)", queue.now))
    assert [one["state"] for one in nodes] == ["MIXED", "IDLE"]


def test_an_operators_state_takes_precedence_over_the_inventory(queue: Queue) -> None:
    register(queue, n1={})
    actor = json.dumps({"user": ROOT.user, "uid": 0, "operator": True})
    queue.sql.execute(
        "select odc.set_node_state($1::jsonb, '{n1}', 'DRAIN', 'new disks', $2)", actor, queue.now
    )
    for report in ({}, {"state": "DOWN", "reason": "not ready"}, {"state": "DRAIN"}):
        register(queue, n1=report)
        assert (node(queue)["state"], node(queue)["reason"]) == ("DRAIN", "new disks")


def sweep(queue: Queue) -> Any:
    return queue.sql.value("select odc.sweep(0, $1, false, $2)", queue.now, GRACE)


def test_a_missing_node_loses_its_jobs_after_the_grace(queue: Queue) -> None:
    register(queue, n1={}, n2={})
    job = queue.submit(gpus=8, node_list=["n1"])
    other = queue.submit(gpus=8, node_list=["n2"])
    assert queue.start() == [job, other]
    away = {"state": "DOWN", "reason": "not ready: kubelet stopped posting"}
    register(queue, n1=away, n2={})
    queue.move(100)
    register(queue, n1=away, n2={})
    assert sweep(queue) <= NOW + GRACE
    assert queue.running(job)["intent"] is None
    queue.move(20)
    sweep(queue)
    assert queue.running(job)["intent"] == "node_fail"
    assert "kubelet stopped posting" in queue.running(job)["exit_detail"]
    assert queue.running(other)["intent"] is None


def test_no_job_ends_when_most_nodes_go_missing_at_once(queue: Queue) -> None:
    names = [f"n{n}" for n in range(1, 6)]
    away = {"state": "DOWN", "reason": "not ready: Kubelet stopped posting node status."}
    register(queue, **{name: {} for name in names})
    jobs = [queue.submit(gpus=8) for _ in names]
    assert queue.start() == jobs
    register(queue, **{name: away if name != "n5" else {} for name in names})
    queue.move(1000)
    sweep(queue)
    assert [queue.running(job)["intent"] for job in jobs] == [None] * 5
    register(queue, **{name: away if name in ("n1", "n2") else {} for name in names})
    sweep(queue)
    ended = queue.sql.values("select job_id from odc.running where intent = 'node_fail' order by 1")
    assert len(ended) == 2


def test_a_node_that_comes_back_in_time_keeps_its_jobs(queue: Queue) -> None:
    register(queue, n1={})
    job = queue.submit(gpus=8)
    queue.start()
    register(queue, n1={"state": "DOWN", "reason": "not ready"})
    queue.move(119)
    register(queue, n1={})
    queue.move(60)
    sweep(queue)
    assert queue.running(job)["intent"] is None


def test_a_node_that_an_operator_took_down_keeps_its_jobs(queue: Queue) -> None:
    register(queue, n1={})
    job = queue.submit(gpus=8)
    queue.start()
    actor = json.dumps({"user": ROOT.user, "uid": 0, "operator": True})
    queue.sql.execute(
        "select odc.set_node_state($1::jsonb, '{n1}', 'DOWN', 'tests', $2)", actor, queue.now
    )
    queue.move(1000)
    sweep(queue)
    assert queue.running(job)["intent"] is None


@pytest.mark.parametrize(("requeue", "state"), [(True, "PENDING"), (False, "NODE_FAIL")])
def test_a_job_of_a_lost_node_runs_again_if_it_allows_requeue(
    queue: Queue, requeue: bool, state: str
) -> None:
    register(queue, n1={})
    job = queue.submit(gpus=8, requeue=requeue)
    queue.start()
    register(queue, n1={"state": "DOWN", "reason": "gone"})
    queue.move(121)
    sweep(queue)
    queue.sql.rows(
        "select * from odc.record_facts(0, array[$1]::bigint[], '{1}', '{0}', '{lost}', "
        "array[$2]::timestamptz[], '{null}', '{null}', '{null}', '{gone}', $2)",
        job, queue.now,
    )  # fmt: skip
    assert queue.state(job) == state


def test_a_gpu_that_fails_on_a_part_used_node_is_not_allocated(queue: Queue) -> None:
    """Before: the node kept its old size until its jobs ended, and the failed GPU counted as
    free."""
    register(queue, n1={})
    first = queue.submit(gpus=4)
    assert queue.start() == [first]
    register(queue, n1={"gpus": 7})
    assert node(queue)["gpus"] == 3
    whole, part = queue.submit(gpus=4), queue.submit(gpus=3)
    assert queue.start() == [part]
    assert queue.contradictions() == []
    register(queue, n1={})
    queue.end(part)
    assert queue.start() == [whole], "the GPU is there again"
    register(queue, n1={"gpus": 7})
    queue.end(first, whole)
    register(queue, n1={"gpus": 7})
    assert (node(queue)["gpus"], queue.contradictions()) == (7, [])
