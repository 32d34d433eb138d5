"""A planned start that moves back leaves an event that says why."""

from __future__ import annotations

import json
from typing import Any

from tests.support.builders import ROOT, Queue


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


def test_who_overtakes_is_named(queue: Queue) -> None:
    fifo(queue, "sjf")
    queue.submit(node_count=2, gpus_per_node=8, time_limit_s=600)
    queue.start()
    long = queue.submit(node_count=2, gpus_per_node=8, time_limit_s=7200)
    queue.start()
    short = queue.submit(node_count=2, gpus_per_node=8, time_limit_s=300)
    queue.start()
    [slip] = slips(queue)
    assert (slip["id"], slip["cause"], slip["job_id"]) == (long, "overtaken", short)


def test_a_job_that_ends_early_makes_no_promise_slip(queue: Queue) -> None:
    """Conservative: whatever ends early, planned starts only come nearer."""
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
