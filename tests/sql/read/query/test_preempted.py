"""The messages about preemption: to the victim, to the preemptor, and in previews."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from odcd.jobs.submission import prepare
from tests.sql.scheduler.plan.test_preempt import Urgent
from tests.support.builders.jobs import ALICE, BOB, ROOT, a_cluster, a_job
from tests.support.harness.database import Sql


class PreemptedQueue(Urgent):
    def show(self, job: int) -> dict[str, Any]:
        [shown] = json.loads(
            self.sql.value("select odc._render_jobs($1, 'oldest', null, $2)", [job], self.now)
        )
        return shown

    def why(self, job: int) -> list[dict[str, Any]]:
        return json.loads(self.sql.value("select odc.explain_job($1, $2)", job, self.now))["why"]

    def preview(self, **fields: Any) -> dict[str, Any]:
        spec = a_job(**{"gpus_per_node": 8, "time_limit_s": 3600, "qos": "urgent", **fields})
        [job] = prepare(ALICE, [spec], key=None, dry_run=True).request["jobs"]
        asks = [{**job, "uid": ALICE.uid, "user": ALICE.user}]
        [answer] = json.loads(
            self.sql.value("select odc.preview_jobs($1::jsonb, $2)", json.dumps(asks), self.now)
        )
        return answer

    def checkpoint(self, job: int, **rest: Any) -> dict[int, str]:
        return {
            a["job_id"]: a["code"] or a["outcome"] for a in self.change("checkpoint", job, **rest)
        }


@pytest.fixture
def queue(sql: Sql) -> Iterator[PreemptedQueue]:
    """A node with a job that may not be preempted, and one with a job that has run for 3 hours."""
    a_cluster(sql, h100=2)
    queue = PreemptedQueue(sql)
    queue.qos("scavenger", grace_s=60)
    queue.qos("urgent", ("scavenger",), priority=1000)
    queue.run(qos="normal")
    yield queue
    assert queue.contradictions() == []


def test_a_victims_record_names_the_preemptor_the_rule_and_the_cost(queue: PreemptedQueue) -> None:
    victim = queue.run()
    queue.move(3 * 3600)
    assert queue.show(victim)["preemption"] is None
    job = queue.ask()
    queue.start()
    record = {
        "text": f"preempted by job {job} (QOS urgent) after 3 h; 24 GPU-hours lost",
        "attempt": 1, "by": job, "qos": "urgent", "victim_qos": "scavenger", "mode": "requeue",
        "at": "2026-01-01T03:00:00Z", "ran_s": 10_800, "grace_s": 60, "lost_gpu_s": 86_400,
    }  # fmt: skip
    assert queue.show(victim)["preemption"] == record
    [cause] = queue.why(victim)
    assert cause["text"] == f"{record['text']}; it has until 2026-01-01T03:01:00Z to end"
    assert (cause["job_id"], cause["until"]) == (job, "2026-01-01T03:01:00Z")
    queue.leave(victim)
    assert queue.show(victim)["preemption"] == record
    queue.start()
    [cause] = [c for c in queue.why(victim) if c["cause"] == "preempted"]
    assert (cause["text"], cause["job_id"]) == (record["text"], job)
    assert [c["job_id"] for c in queue.why(victim) if c["cause"] == "running_job"] == [job]
    queue.change("hold", victim, who=BOB)
    assert [c["cause"] for c in queue.why(victim)] == ["hold", "preempted"]
    queue.change("release", victim, who=BOB)
    queue.move(1000)
    queue.end(job)
    assert queue.start() == [victim]
    assert queue.show(victim)["preemption"] == record
    queue.end(victim)
    assert queue.show(victim)["state"] == "COMPLETED"
    assert queue.show(victim)["preemption"] == record
    assert queue.show(job)["preemption"] is None


def test_a_preemptor_shows_the_victims_it_waits_for(queue: PreemptedQueue) -> None:
    victim = queue.run()
    job = queue.ask()
    queue.start()
    [cause] = [c for c in queue.why(job) if c["cause"] == "running_job"]
    assert cause["job_id"] == victim
    assert cause["until"] == "2026-01-01T00:01:00Z"
    assert cause["text"].endswith("until 2026-01-01T00:01:00Z; it is preempted for this one")
    assert queue.show(job)["planned_start_at"] == "2026-01-01T00:01:00Z"


def test_a_preview_names_the_victims_and_writes_nothing(queue: PreemptedQueue) -> None:
    victim = queue.run()
    queue.move(3 * 3600)
    preview = queue.preview()
    assert preview["victims"] == [
        {
            "text": f"job {victim} of bob (QOS scavenger) after 3 h: 24 GPU-hours lost; it goes "
            "back to the queue",
            "job_id": victim, "user": "bob", "qos": "scavenger", "mode": "requeue",
            "ran_s": 10_800, "grace_s": 60, "lost_gpu_s": 86_400,
        }
    ]  # fmt: skip
    assert (preview["start_at"], preview["node_names"]) == ("2026-01-01T03:01:00Z", ["h100-2"])
    assert queue.victims() == {}
    queue.ask()
    queue.start()
    assert set(queue.victims()) == {victim}, "and so it comes"


def test_a_preview_of_a_job_without_victims_has_its_start(queue: PreemptedQueue) -> None:
    assert queue.preview()["victims"] == []
    queue.run()
    other = queue.preview(qos="normal")
    assert (other["victims"], other["start_at"]) == ([], "2026-01-02T03:46:40Z")


def test_the_default_qos_of_a_user_counts_in_a_preview(queue: PreemptedQueue) -> None:
    victim = queue.run()
    queue.sql.execute(
        "update odc.account set default_qos_id = (select id from odc.qos where name = 'urgent')"
    )
    assert [v["job_id"] for v in queue.preview(qos=None)["victims"]] == [victim]


def test_a_checkpoint_is_reported_by_the_owner_of_a_running_job(queue: PreemptedQueue) -> None:
    job = queue.run()
    waits = queue.ask(qos="normal")
    queue.move(100)
    assert queue.checkpoint(job) == {job: "OD013"}
    assert queue.checkpoint(waits) == {waits: "OD012"}
    assert queue.checkpoint(10**9) == {10**9: "OD006"}
    assert queue.running(job)["checkpoint_at"] is None
    assert queue.checkpoint(job, who=BOB) == {job: "checkpointed"}
    assert queue.show(job)["checkpoint_at"] == "2026-01-01T00:01:40Z"
    assert queue.events(job)[-1] == "checkpointed"
    queue.move(30)
    queue.ask()
    queue.start()
    record = queue.show(job)["preemption"]
    assert (record["checkpoint_at"], record["ran_s"]) == ("2026-01-01T00:01:40Z", 130)
    assert record["lost_gpu_s"] == 30 * 8
    queue.end(job)
    assert queue.checkpoint(job, who=ROOT) == {job: "OD012"}


def test_a_job_that_has_not_begun_has_no_checkpoint(queue: PreemptedQueue) -> None:
    job = queue.submit(BOB, gpus_per_node=8)
    assert queue.start() == [job]
    assert queue.checkpoint(job, who=BOB) == {job: "OD012"}


def test_a_requeued_job_begins_without_a_checkpoint(queue: PreemptedQueue) -> None:
    job = queue.run()
    queue.move(10)
    queue.checkpoint(job, who=BOB)
    queue.requeue(job, who=BOB)
    queue.end(job)
    assert queue.start() == [job]
    assert queue.running(job)["checkpoint_at"] is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(45, "45 s"), (3599, "59 min"), (9000, "2 h 30 min"), (10_800, "3 h"), (97_200, "1 d 3 h")],
)
def test_durations_are_readable(sql: Sql, seconds: int, text: str) -> None:
    assert sql.value("select odc._span($1)", seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 GPU-seconds"), (2400, "40 GPU-minutes"), (5400, "1.5 GPU-hours"),
     (86_400, "24 GPU-hours")],
)  # fmt: skip
def test_costs_are_readable(sql: Sql, seconds: int, text: str) -> None:
    assert sql.value("select odc._unit_hours($1, 'GPU')", seconds) == text
