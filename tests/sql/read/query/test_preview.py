"""Previews of a job: when it would start, and which jobs it would delay; nothing is written."""

from __future__ import annotations

import json
from typing import Any

from odcd.jobs.submission import prepare
from tests.sql.limits.account.books import a_limit, a_member, an_account
from tests.support.builders.jobs import ALICE, Queue, a_job


def preview(queue: Queue, *alternatives: dict[str, Any]) -> list[dict[str, Any]]:
    jobs = [a_job(**fields) for fields in alternatives]
    asks = [
        {**ask, "uid": ALICE.uid}
        for ask in prepare(ALICE, jobs, key=None, dry_run=True).request["jobs"]
    ]
    before = queue.sql.values("select count(*) from odc.event")
    answers = json.loads(
        queue.sql.value("select odc.preview_jobs($1::jsonb, $2)", json.dumps(asks), queue.now)
    )
    assert queue.sql.values("select count(*) from odc.event") == before
    return answers


def fifo(queue: Queue) -> None:
    queue.sql.execute("update odc.partition set policy = 'fifo'")


def test_a_job_that_fits_starts_now_and_delays_no_job(queue: Queue) -> None:
    [answer] = preview(queue, {"gpus": 4})
    assert answer["start_at"] == queue.now.isoformat().replace("+00:00", "Z")
    assert len(answer["node_names"]) == 1
    assert (answer["delays"], answer["refused"]) == ([], None)


def test_a_job_behind_others_gets_its_planned_start(queue: Queue) -> None:
    fifo(queue)
    for limit_s in (600, 1200):
        queue.submit(gpus=8, time_limit_s=limit_s)
    queue.start()
    queue.submit(gpus=8, time_limit_s=3600)
    [answer] = preview(queue, {"gpus": 8, "time_limit_s": 600})
    assert answer["start_at"] == "2026-01-01T00:20:00Z", "the second node to be free"


def test_jobs_that_would_be_delayed_are_named(queue: Queue) -> None:
    queue.sql.execute("update odc.partition set policy = 'sjf'")
    queue.sql.execute("update odc.policy set plan_depth = 2 where name = 'sjf'")
    for _ in range(2):
        queue.submit(gpus=8, time_limit_s=600)
    queue.start()
    long = queue.submit(node_count=2, gpus_per_node=8, time_limit_s=7200)
    [answer] = preview(queue, {"node_count": 2, "gpus_per_node": 8, "time_limit_s": 1800})
    assert answer["delays"] == [
        {"job_id": long, "from": "2026-01-01T00:10:00Z", "to": "2026-01-01T00:40:00Z"}
    ]


def test_jobs_that_would_lose_their_planned_start_are_named(queue: Queue) -> None:
    queue.sql.execute("update odc.partition set policy = 'sjf'")
    queue.sql.execute("update odc.policy set plan_depth = 1 where name = 'sjf'")
    for _ in range(2):
        queue.submit(gpus=8, time_limit_s=600)
    queue.start()
    long = queue.submit(node_count=2, gpus_per_node=8, time_limit_s=7200)
    queue.start()
    ask = {"node_count": 2, "gpus_per_node": 8, "time_limit_s": 1800}
    [answer] = preview(queue, ask)
    assert answer["delays"] == [{"job_id": long, "from": "2026-01-01T00:10:00Z", "to": None}]
    assert (answer["promised"], answer["start_at"]) == (True, "2026-01-01T00:10:00Z")
    short = queue.submit(**ask)
    queue.start()
    assert queue.sql.values("select job_id from odc.planned") == [short]


def test_a_job_beyond_the_plan_depth_gets_a_start_without_a_promise(queue: Queue) -> None:
    fifo(queue)
    queue.sql.execute("update odc.policy set plan_depth = 1 where name = 'fifo'")
    for _ in range(2):
        queue.submit(gpus=8, time_limit_s=600)
    queue.start()
    for _ in range(2):
        queue.submit(node_count=2, gpus_per_node=8, time_limit_s=600)
    [answer] = preview(queue, {"gpus": 8, "time_limit_s": 1200})
    assert (answer["promised"], answer["start_at"]) == (False, "2026-01-01T00:30:00Z")
    assert answer["delays"] == []


def test_a_job_that_fits_no_node_gets_the_reason_of_the_queue(queue: Queue) -> None:
    def reason(**ask: Any) -> str:
        job = queue.submit(**ask)
        [answer] = preview(queue, ask)
        queue.start()
        assert (answer["start_at"], answer["promised"]) == (None, False)
        shown = queue.sql.value("select reason from odc.pending_job where id = $1", job)
        assert answer["reason"] == shown
        queue.cancel(job)
        return answer["reason"]

    queue.sql.execute(
        "select odc.set_node_state($1::jsonb, '{h100-1}', 'DRAIN', 'new driver', $2)",
        json.dumps({"user": "root", "uid": 0, "operator": True}), queue.now,
    )  # fmt: skip
    assert reason(gpus=1, node_list=["h100-1"]) == "ReqNodeNotAvail"
    queue.sql.execute("update odc.partition set state = 'DOWN'")
    assert reason(gpus=1) == "PartitionDown"


def test_a_refused_alternative_does_not_affect_the_others(queue: Queue) -> None:
    fits, never = preview(queue, {"gpus": 1}, {"gpus_per_node": 16})
    assert fits["refused"] is None
    assert never["refused"]["code"] == "OD008"


def test_a_limit_that_is_used_up_is_named(queue: Queue) -> None:
    a_limit(queue.sql, "qos", 1, "user", "gpus", 6)
    queue.submit(gpus=4, time_limit_s=600)
    queue.start()
    fits, over, never = preview(queue, {"gpus": 2}, {"gpus": 3}, {"gpus": 7})
    assert (fits["limit"], fits["start_at"]) == (None, "2026-01-01T00:00:00Z")
    assert (over["limit"], over["start_at"]) == ("QOSMaxGRESPerUser", "2026-01-01T00:10:00Z")
    assert never["refused"]["code"] == "OD009"


def test_a_preview_applies_the_limits_of_a_submit(queue: Queue) -> None:
    lab = an_account(queue.sql, "lab")
    a_member(queue.sql, lab, ALICE, is_default=True)
    a_limit(queue.sql, "account", lab, "job", "gpus", 1)
    [answer] = preview(queue, {"gpus": 2})
    assert answer["refused"]["message"] == (
        "2 GPUs is more than the 1 GPU allowed for a job in account lab (AssocMaxGRESPerJob)"
    )
    [answer] = preview(queue, {"gpus": 2, "qos": "best"})
    assert answer["refused"]["code"] == "OD004"


def test_licences_count_in_a_preview(queue: Queue) -> None:
    queue.sql.execute("insert into odc.licence (name, total) values ('matlab', 2)")
    holder = queue.submit(licences={"matlab": 1})
    assert queue.start() == [holder]
    fits, lacks = preview(queue, {"licences": {"matlab": 1}}, {"licences": {"matlab": 2}})
    assert fits["start_at"] is not None
    assert (lacks["start_at"], lacks["limit"]) == ("2026-01-02T00:00:00Z", "Licenses")
