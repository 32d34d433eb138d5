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


class Told(Urgent):
    def show(self, job: int) -> dict[str, Any]:
        [told] = json.loads(
            self.sql.value("select odc._render_jobs($1, 'oldest', null, $2)", [job], self.now)
        )
        return told

    def why(self, job: int) -> list[dict[str, Any]]:
        return json.loads(self.sql.value("select odc.explain_job($1, $2)", job, self.now))["why"]

    def preview(self, **fields: Any) -> dict[str, Any]:
        spec = a_job(**{"gpus_per_node": 8, "time_limit_s": 3600, "qos": "urgent", **fields})
        [job] = prepare(ALICE, [spec], key=None, dry_run=True).request["jobs"]
        asks = [{**job, "uid": ALICE.uid, "user": ALICE.user}]
        [told] = json.loads(
            self.sql.value("select odc.preview_jobs($1::jsonb, $2)", json.dumps(asks), self.now)
        )
        return told

    def checkpoint(self, job: int, **rest: Any) -> dict[int, str]:
        return {
            a["job_id"]: a["code"] or a["outcome"] for a in self.change("checkpoint", job, **rest)
        }


@pytest.fixture
def told(sql: Sql) -> Iterator[Told]:
    """A node with a job that may not be ended, and one with a job that has run for 3 hours."""
    a_cluster(sql, h100=2)
    told = Told(sql)
    told.qos("scavenger", grace_s=60)
    told.qos("urgent", ("scavenger",), priority=1000)
    told.run(qos="normal")
    yield told
    assert told.contradictions() == []


def test_a_victims_record_names_the_preemptor_the_rule_and_the_cost(told: Told) -> None:
    victim = told.run()
    told.move(3 * 3600)
    assert told.show(victim)["preemption"] is None
    job = told.ask()
    told.start()
    record = {
        "text": f"preempted by job {job} (QOS urgent) after 3 h; 24 GPU-hours lost",
        "attempt": 1, "by": job, "qos": "urgent", "victim_qos": "scavenger", "mode": "requeue",
        "at": "2026-01-01T03:00:00Z", "ran_s": 10_800, "grace_s": 60, "lost_gpu_s": 86_400,
    }  # fmt: skip
    assert told.show(victim)["preemption"] == record
    [cause] = told.why(victim)
    assert cause["text"] == f"{record['text']}; it has until 2026-01-01T03:01:00Z to end"
    assert (cause["job_id"], cause["until"]) == (job, "2026-01-01T03:01:00Z")
    told.leave(victim)
    assert told.show(victim)["preemption"] == record
    told.start()
    [cause] = [c for c in told.why(victim) if c["cause"] == "preempted"]
    assert (cause["text"], cause["job_id"]) == (record["text"], job)
    assert [c["job_id"] for c in told.why(victim) if c["cause"] == "running_job"] == [job]
    told.change("hold", victim, who=BOB)
    assert [c["cause"] for c in told.why(victim)] == ["hold", "preempted"]
    told.change("release", victim, who=BOB)
    told.move(1000)
    told.end(job)
    assert told.start() == [victim]
    assert told.show(victim)["preemption"] == record
    told.end(victim)
    assert told.show(victim)["state"] == "COMPLETED"
    assert told.show(victim)["preemption"] == record
    assert told.show(job)["preemption"] is None


def test_a_preemptor_is_told_for_whom_it_waits(told: Told) -> None:
    victim = told.run()
    job = told.ask()
    told.start()
    [cause] = [c for c in told.why(job) if c["cause"] == "running_job"]
    assert cause["job_id"] == victim
    assert cause["until"] == "2026-01-01T00:01:00Z"
    assert cause["text"].endswith("until 2026-01-01T00:01:00Z; it is preempted for this one")
    assert told.show(job)["planned_start_at"] == "2026-01-01T00:01:00Z"


def test_a_preview_says_who_would_be_ended_and_writes_nothing(told: Told) -> None:
    victim = told.run()
    told.move(3 * 3600)
    preview = told.preview()
    assert preview["victims"] == [
        {
            "text": f"job {victim} of bob (QOS scavenger) after 3 h: 24 GPU-hours lost; it goes "
            "back to the queue",
            "job_id": victim, "user": "bob", "qos": "scavenger", "mode": "requeue",
            "ran_s": 10_800, "grace_s": 60, "lost_gpu_s": 86_400,
        }
    ]  # fmt: skip
    assert (preview["start_at"], preview["node_names"]) == ("2026-01-01T03:01:00Z", ["h100-2"])
    assert told.victims() == {}
    told.ask()
    told.start()
    assert set(told.victims()) == {victim}, "and so it comes"


def test_a_preview_of_a_job_that_preempts_nobody_says_when_it_starts(told: Told) -> None:
    assert told.preview()["victims"] == []
    told.run()
    other = told.preview(qos="normal")
    assert (other["victims"], other["start_at"]) == ([], "2026-01-02T03:46:40Z")


def test_the_default_qos_of_a_user_counts_in_a_preview(told: Told) -> None:
    victim = told.run()
    told.sql.execute(
        "update odc.account set default_qos_id = (select id from odc.qos where name = 'urgent')"
    )
    assert [v["job_id"] for v in told.preview(qos=None)["victims"]] == [victim]


def test_a_checkpoint_is_its_users_word_on_a_running_job(told: Told) -> None:
    job = told.run()
    waits = told.ask(qos="normal")
    told.move(100)
    assert told.checkpoint(job) == {job: "OD013"}
    assert told.checkpoint(waits) == {waits: "OD012"}
    assert told.checkpoint(10**9) == {10**9: "OD006"}
    assert told.running(job)["checkpoint_at"] is None
    assert told.checkpoint(job, who=BOB) == {job: "checkpointed"}
    assert told.show(job)["checkpoint_at"] == "2026-01-01T00:01:40Z"
    assert told.events(job)[-1] == "checkpointed"
    told.move(30)
    told.ask()
    told.start()
    record = told.show(job)["preemption"]
    assert (record["checkpoint_at"], record["ran_s"]) == ("2026-01-01T00:01:40Z", 130)
    assert record["lost_gpu_s"] == 30 * 8
    told.end(job)
    assert told.checkpoint(job, who=ROOT) == {job: "OD012"}


def test_a_job_that_has_not_begun_has_no_checkpoint(told: Told) -> None:
    job = told.submit(BOB, gpus_per_node=8)
    assert told.start() == [job]
    assert told.checkpoint(job, who=BOB) == {job: "OD012"}


def test_a_requeued_job_begins_without_a_checkpoint(told: Told) -> None:
    job = told.run()
    told.move(10)
    told.checkpoint(job, who=BOB)
    told.requeue(job, who=BOB)
    told.end(job)
    assert told.start() == [job]
    assert told.running(job)["checkpoint_at"] is None


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(45, "45 s"), (3599, "59 min"), (9000, "2 h 30 min"), (10_800, "3 h"), (97_200, "1 d 3 h")],
)
def test_a_length_of_time_reads_well(sql: Sql, seconds: int, text: str) -> None:
    assert sql.value("select odc._span($1)", seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 GPU-seconds"), (2400, "40 GPU-minutes"), (5400, "1.5 GPU-hours"),
     (86_400, "24 GPU-hours")],
)  # fmt: skip
def test_a_cost_reads_well(sql: Sql, seconds: int, text: str) -> None:
    assert sql.value("select odc._unit_hours($1, 'GPU')", seconds) == text
