"""A planned start that moves later writes an event with the cause."""

from __future__ import annotations

import json
from typing import Any

from tests.support.builders.jobs import ROOT, Queue


def slips(queue: Queue) -> list[dict[str, Any]]:
    rows = queue.sql.rows("select job_id, detail from odc.event where kind = 'slipped' order by id")
    return [{"id": row["job_id"], **json.loads(row["detail"])} for row in rows]


def fifo(queue: Queue, name: str = "fifo") -> None:
    queue.sql.execute("update odc.partition set policy = $1", name)


def test_a_node_that_goes_away_is_the_cause(queue: Queue) -> None:
    fifo(queue)
    queue.submit(node_count=2, gpus_per_node=8, time_limit_s=600)
    queue.start()
    job = queue.submit(gpus_per_node=8, time_limit_s=600, node_list=["h100-1"])
    queue.start()
    queue.sql.execute(
        "select odc.set_node_state($1::jsonb, '{h100-1}', 'DRAIN', 'new driver', $2)",
        json.dumps({"user": "root", "uid": 0, "operator": True}), queue.now,
    )  # fmt: skip
    queue.move(1)
    queue.start()
    [slip] = slips(queue)
    assert (slip["id"], slip["by"]) == (job, ROOT.user)
    assert slip["cause"].startswith("node")
    assert "to" not in slip, "no start is in sight"


def test_a_longer_limit_of_a_running_job_is_the_cause(queue: Queue) -> None:
    fifo(queue)
    running = [queue.submit(gpus=8, time_limit_s=600) for _ in range(2)]
    queue.start()
    job = queue.submit(node_count=2, gpus_per_node=8, time_limit_s=600)
    queue.start()
    queue.update(running[0], changes={"time_limit_s": 1200}, who=ROOT)
    queue.move(1)
    queue.start()
    [slip] = slips(queue)
    assert (slip["id"], slip["cause"], slip["job_id"]) == (job, "updated", running[0])
    assert (slip["from"], slip["to"]) == ("2026-01-01T00:10:00Z", "2026-01-01T00:20:00Z")


def test_the_overtaking_job_is_named(queue: Queue) -> None:
    fifo(queue, "sjf")
    queue.submit(node_count=2, gpus_per_node=8, time_limit_s=600)
    queue.start()
    long = queue.submit(node_count=2, gpus_per_node=8, time_limit_s=7200)
    queue.start()
    short = queue.submit(node_count=2, gpus_per_node=8, time_limit_s=300)
    queue.start()
    [slip] = slips(queue)
    assert (slip["id"], slip["cause"], slip["job_id"]) == (long, "overtaken", short)


def test_an_early_end_delays_no_planned_start(queue: Queue) -> None:
    """Conservative: after any early end, planned starts only move earlier."""
    queue.sql.execute("update odc.policy set plan_depth = 1000 where name = 'fifo'")
    fifo(queue)
    first = queue.submit(gpus=8, time_limit_s=3600)
    queue.submit(gpus=8, time_limit_s=7200)
    queue.start()
    for nodes, limit_s in ((2, 600), (1, 6000), (1, 3000), (2, 300), (1, 900)):
        queue.submit(node_count=nodes, gpus_per_node=8, time_limit_s=limit_s)
    queue.start()
    queue.move(1000)
    queue.end(first)
    queue.start()
    assert slips(queue) == []


def test_a_running_job_over_its_limit_is_the_cause_and_reported_once(queue: Queue) -> None:
    fifo(queue)
    over = queue.submit(node_count=2, gpus_per_node=8, time_limit_s=600)
    queue.start()
    job = queue.submit(gpus=8, time_limit_s=600)
    queue.start()
    for seconds in (590, 15, 10, 10):
        queue.move(seconds)
        queue.start()
    [slip] = slips(queue)
    assert (slip["id"], slip["cause"], slip["job_id"]) == (job, "overrun", over)
    assert (slip["from"], slip["to"]) == ("2026-01-01T00:10:00Z", "2026-01-01T00:10:06Z")


def test_a_preemptor_that_starts_before_its_time_is_the_cause(queue: Queue) -> None:
    """Its victim ends at once, and it takes the node that another job also waits for."""
    fifo(queue)
    queue.sql.execute("insert into odc.qos (name, grace_s) values ('spare', 600)")
    queue.sql.execute(
        "insert into odc.qos (name, preempts) "
        "select 'urgent', array[id] from odc.qos where name = 'spare'"
    )
    victim = queue.submit(gpus=4, qos="spare", node_list=["h100-1"], time_limit_s=7200)
    other = queue.submit(gpus=4, node_list=["h100-1"], time_limit_s=300)
    queue.start()
    waits = queue.submit(gpus=4, node_list=["h100-1"], time_limit_s=200)
    urgent = queue.submit(gpus=8, node_list=["h100-1"], time_limit_s=7200, qos="urgent")
    queue.start()
    queue.start()
    queue.sql.rows("select * from odc.take_stops(0, $1)", queue.now)
    assert slips(queue) == []
    queue.move(10)
    queue.end(victim, other)
    assert queue.start() == [urgent]
    [slip] = slips(queue)
    assert (slip["id"], slip["cause"], slip["job_id"]) == (waits, "preemption", urgent)


def test_an_array_whose_task_starts_as_planned_does_not_slip(queue: Queue) -> None:
    """Its row then belongs to the next task."""
    fifo(queue)
    first = queue.submit(node_count=2, gpus_per_node=8, time_limit_s=600)
    queue.start()
    queue.submit(node_count=2, gpus_per_node=8, time_limit_s=600, array="0-3")
    queue.start()
    queue.move(500)
    queue.end(first)
    assert len(queue.start()) == 1
    assert slips(queue) == []


def test_a_job_started_behind_an_overrun_is_not_the_cause(
    queue: Queue,
) -> None:
    fifo(queue)
    over = queue.submit(gpus=4, node_list=["h100-1"], time_limit_s=600)
    queue.start()
    job = queue.submit(node_count=2, gpus_per_node=8, time_limit_s=600)
    queue.start()
    queue.move(590)
    queue.start()
    queue.move(20)
    queue.submit(gpus=1, node_list=["h100-2"], time_limit_s=1)
    queue.start()
    [slip] = slips(queue)
    assert (slip["id"], slip["cause"], slip["job_id"]) == (job, "overrun", over)


def test_a_job_that_starts_on_the_planned_nodes_is_the_cause(queue: Queue) -> None:
    """The next task of an earlier array, not a job that starts on other nodes."""
    fifo(queue)
    array = queue.submit(gpus=8, node_list=["h100-1"], time_limit_s=600, array="0-3%1")
    [task] = queue.start()
    job = queue.submit(gpus=8, node_list=["h100-1"], time_limit_s=600)
    queue.start()
    queue.move(500)
    queue.end(task)
    elsewhere = queue.submit(gpus=1, node_list=["h100-2"], time_limit_s=600)
    started = queue.start()
    assert elsewhere in started
    [slip] = slips(queue)
    assert (slip["id"], slip["cause"]) == (job, "overtaken")
    assert queue.running(slip["job_id"])["array_job_id"] == array
