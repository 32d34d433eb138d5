"""Users see which limit or licence a job waits for, and when it will start."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from tests.sql.limits.account.books import a_limit
from tests.sql.limits.licence.test_licences import put
from tests.sql.scheduler.plan.test_limits_over_time import HOUR, TEN_DAYS, planned
from tests.support.builders.jobs import BOB, Queue


@pytest.fixture
def easy(queue: Queue) -> Queue:
    """First come, first served, with one protected job."""
    queue.sql.execute("update odc.partition set policy = 'fifo'")
    queue.sql.execute("update odc.policy set plan_depth = 1 where name = 'fifo'")
    return queue


def explained(queue: Queue, job: int) -> dict[str, Any]:
    return json.loads(queue.sql.value("select odc.explain_job($1, $2)", job, queue.now))


def test_why_names_the_job_for_which_a_free_licence_is_kept(easy: Queue) -> None:
    put(easy, "matlab", 1)
    small = easy.submit(BOB, gpus=2, time_limit_s=HOUR)
    assert easy.start() == [small]
    first = easy.submit(node_count=2, gpus_per_node=7, licences={"matlab": 1}, time_limit_s=HOUR)
    long = easy.submit(BOB, gpus=1, licences={"matlab": 1}, time_limit_s=TEN_DAYS)
    assert easy.start() == []
    why = explained(easy, long)
    assert why["reason"] == "Licenses"
    [cause] = [cause for cause in why["why"] if cause["cause"] == "limit"]
    assert cause["job_id"] == first
    assert cause["limit"] == "Licenses"
    assert cause["until"] == "2026-01-01T02:00:00Z"
    assert f"job {first}" in cause["text"]


def test_why_names_the_licence_and_when_a_planned_job_gets_it(easy: Queue) -> None:
    put(easy, "matlab", 2)
    holders = [easy.submit(licences={"matlab": 1}, time_limit_s=n * HOUR) for n in (1, 2)]
    assert easy.start() == holders
    both = easy.submit(licences={"matlab": 2}, time_limit_s=HOUR)
    assert easy.start() == []
    why = explained(easy, both)
    assert why["reason"] == "Licenses"
    assert why["planned_start_at"] == "2026-01-01T02:00:00Z"
    assert why["why"][0]["text"] == "it needs 2 of licence matlab, and 2 of 2 are in use"
    assert why["why"][0]["until"] == "2026-01-01T02:00:00Z"


def test_a_preview_says_when_a_limit_will_allow_the_job(easy: Queue) -> None:
    put(easy, "matlab", 1)
    holder = easy.submit(licences={"matlab": 1}, time_limit_s=HOUR)
    assert easy.start() == [holder]
    ask = {
        "uid": 1001, "user": "alice", "operator": False, "licences": {"matlab": 1},
        "time_limit_s": HOUR, "node_count": 1, "ntasks": 1,
    }  # fmt: skip
    [answer] = json.loads(
        easy.sql.value("select odc.preview_jobs($1::jsonb, $2)", json.dumps([ask]), easy.now)
    )
    assert (answer["start_at"], answer["promised"]) == ("2026-01-01T01:00:00Z", True)
    assert answer["limit"] == "Licenses"


def test_expected_starts_of_jobs_that_lack_a_licence_are_in_sight(easy: Queue) -> None:
    put(easy, "matlab", 1)
    holder = easy.submit(licences={"matlab": 1}, time_limit_s=HOUR)
    assert easy.start() == [holder]
    waits = [easy.submit(BOB, licences={"matlab": 1}, time_limit_s=HOUR) for _ in range(3)]
    free = easy.submit(BOB, gpus=1, time_limit_s=HOUR)
    assert easy.start() == [free]
    expected = {row["job_id"]: row for row in easy.sql.rows(
        "select * from odc.forecast($1)", easy.now)}  # fmt: skip
    assert list(expected) == waits
    # Jobs are predicted to run for half of their limits.
    minutes = [(expected[job]["p50"] - easy.now).total_seconds() / 60 for job in waits]
    assert minutes == pytest.approx([30, 60, 90], abs=2)
    assert expected[waits[0]]["exact"]
    assert expected[waits[0]]["p90"] == easy.now + timedelta(hours=1), "its planned start"


def test_expected_starts_keep_licences_for_the_job_that_needs_all(easy: Queue) -> None:
    put(easy, "matlab", 2)
    holders = [easy.submit(licences={"matlab": 1}, time_limit_s=n * HOUR) for n in (2, 4)]
    assert easy.start() == holders
    both = easy.submit(licences={"matlab": 2}, time_limit_s=HOUR)
    one = easy.submit(BOB, licences={"matlab": 1}, time_limit_s=9 * HOUR)
    assert easy.start() == []
    expected = {
        row["job_id"]: (row["p50"] - easy.now).total_seconds() / HOUR
        for row in easy.sql.rows("select * from odc.forecast($1)", easy.now)
    }
    assert expected[both] == pytest.approx(2, abs=0.1)
    assert expected[one] == pytest.approx(2.5, abs=0.1)


def test_a_job_over_a_limit_per_job_has_no_expected_start(easy: Queue) -> None:
    job = easy.submit(gpus=2, gpu_type="h100", time_limit_s=HOUR)
    a_limit(easy.sql, "qos", 1, "job", "gpus", 1)
    assert easy.start() == []
    assert easy.sql.rows("select * from odc.forecast($1)", easy.now) == []
    assert planned(easy) == {}
    assert explained(easy, job)["reason"] == "QOSMaxGRESPerJob"


def test_why_of_a_planned_job_says_that_a_free_licence_is_kept_for_others(easy: Queue) -> None:
    put(easy, "matlab", 1)
    easy.sql.execute("update odc.policy set plan_depth = 10 where name = 'fifo'")
    small = easy.submit(BOB, gpus=2, time_limit_s=HOUR)
    assert easy.start() == [small]
    first = easy.submit(node_count=2, gpus_per_node=7, licences={"matlab": 1}, time_limit_s=HOUR)
    long = easy.submit(BOB, gpus=1, licences={"matlab": 1}, time_limit_s=TEN_DAYS)
    assert easy.start() == []
    assert planned(easy) == {first: HOUR, long: 2 * HOUR}
    [cause] = explained(easy, long)["why"]
    assert cause["text"] == (
        "what is left of the licences that it needs is kept for jobs that are planned before it"
    )
    assert (cause["limit"], cause["until"]) == ("Licenses", "2026-01-01T02:00:00Z")
