"""Licences: counted over the whole cluster, used by running jobs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from odcd.errors import BadRequest, NeverFits, NotOwner, UnknownLicence, WrongState
from odcd.records.job import Identity
from tests.sql.limits.booking.desk import HOUR, actor
from tests.support.builders.jobs import ALICE, ROOT, Queue


def put(queue: Queue, name: str, total: int, who: Identity = ROOT) -> dict[str, Any]:
    return json.loads(
        queue.sql.value(
            "select odc.set_licence($1::jsonb, $2, $3, $4)", actor(who), name, total, queue.now
        )
    )


def drop(queue: Queue, name: str, who: Identity = ROOT) -> None:
    queue.sql.value("select odc.delete_licence($1::jsonb, $2, $3)", actor(who), name, queue.now)


def buckets(queue: Queue, *shapes: int) -> dict[str, Any]:
    return queue.sql.row("select * from odc._plan_licences($1)", list(shapes))


def shape_of(queue: Queue, job: int) -> int:
    return queue.shape(job)["id"]


def test_operators_set_licences_to_valid_counts(queue: Queue) -> None:
    with pytest.raises(NotOwner):
        put(queue, "matlab", 1, ALICE)
    with pytest.raises(NotOwner):
        drop(queue, "matlab", ALICE)
    for name, total in (("a b", 1), ("", 1), ("a", -1), ("a", 2**40)):
        with pytest.raises(BadRequest) as refused:
            put(queue, name, total)
        assert refused.value.hint
    with pytest.raises(UnknownLicence):
        drop(queue, "matlab")
    put(queue, "matlab", 1)
    assert put(queue, "matlab", 3)["total"] == 3
    kinds = queue.sql.values("select kind from odc.event where kind like 'licence%' order by id")
    assert kinds == ["licence_set", "licence_set"]


def test_a_job_that_requests_more_licences_than_exist_is_refused(queue: Queue) -> None:
    assert type(queue.refused(licences={"matlab": 1})) is UnknownLicence
    put(queue, "matlab", 2)
    refused = queue.refused(licences={"matlab": 3})
    assert (type(refused), refused.message) == (
        NeverFits, 'the job requests 3 of licence "matlab", but the total is 2',
    )  # fmt: skip
    assert refused.hint == "Licences: matlab (2)."
    job = queue.submit(licences={"matlab": 2})
    assert json.loads(queue.shape(job)["licences"]) == {"matlab": 2}
    assert shape_of(queue, queue.submit(licences={"matlab": 2})) == shape_of(queue, job)
    assert shape_of(queue, queue.submit()) != shape_of(queue, job)


def test_without_licences_a_pass_reads_none(queue: Queue) -> None:
    put(queue, "matlab", 2)
    shape = shape_of(queue, queue.submit())
    assert set(buckets(queue, shape).values()) == {None}


def test_a_pass_reads_the_licences_that_each_class_needs_and_those_left(queue: Queue) -> None:
    for name, total in (("ansys", 1), ("idl", 7), ("matlab", 4)):
        put(queue, name, total)
    running = queue.submit(licences={"matlab": 3})
    assert queue.start() == [running]
    none, both, one = (
        queue.submit(), queue.submit(licences={"matlab": 2, "ansys": 1}),
        queue.submit(licences={"matlab": 1}),
    )  # fmt: skip
    limits = buckets(queue, *(shape_of(queue, job) for job in (none, both, one)), -1)
    reasons, left = limits["reasons"], limits["left"]
    draws = [
        [
            (reasons[bucket - 1], left[bucket - 1], need)
            for bucket, need in zip(
                limits["use_bucket"][start - 1 : end],
                limits["use_need"][start - 1 : end],
                strict=True,
            )
        ]
        for start, end in zip(limits["use_from"], limits["use_to"], strict=True)
    ]  # fmt: skip
    assert draws == [
        [], [("Licenses", 1, 1), ("Licenses", 1, 2)], [("Licenses", 1, 1)], [],
    ]  # fmt: skip
    assert limits["consumes"] == [True, True, True]


def test_running_jobs_use_licences_and_release_them_at_their_end(queue: Queue) -> None:
    put(queue, "matlab", 2)
    first = queue.submit(licences={"matlab": 2}, time_limit_s=HOUR)
    assert queue.start() == [first]
    second = queue.submit(licences={"matlab": 1}, time_limit_s=60)
    third = queue.submit(time_limit_s=60)
    assert queue.start() == [third]
    explanation = json.loads(queue.sql.value("select odc.explain_job($1, $2)", second, queue.now))
    assert explanation["reason"] == "Licenses"
    texts = [cause["text"] for cause in explanation["why"]]
    assert texts[0] == "it needs 1 of licence matlab, and 2 of 2 are in use"
    assert texts[1] == f"job {first} holds 2 of licence matlab until 2026-01-01T01:00:00Z"
    assert explanation["why"][1]["job_id"] == first
    queue.end(first)
    assert queue.start() == [second]


def test_the_time_of_free_licences_is_given_only_if_they_suffice(queue: Queue) -> None:
    put(queue, "matlab", 2)
    held = [queue.submit(licences={"matlab": 1}, time_limit_s=n * HOUR) for n in (1, 2)]
    assert queue.start() == held
    both = queue.submit(licences={"matlab": 2})
    assert queue.start() == []

    def why() -> dict[str, str]:
        explanation = json.loads(queue.sql.value("select odc.explain_job($1, $2)", both, queue.now))
        return explanation["why"][0]

    assert why()["until"] == "2026-01-01T02:00:00Z", "both are needed"
    put(queue, "matlab", 0)
    assert why()["text"] == "it needs 2 of licence matlab, but the total is 0"
    assert "until" not in why()


def test_missing_licences_are_named(queue: Queue) -> None:
    put(queue, "z", 1)
    put(queue, "aa", 1)
    holder = queue.submit(licences={"aa": 1, "z": 1})
    assert queue.start() == [holder]
    waits = queue.submit(licences={"aa": 1, "z": 1})
    explanation = json.loads(queue.sql.value("select odc.explain_job($1, $2)", waits, queue.now))
    assert [cause["limit"] for cause in explanation["why"]] == ["aa", "z", "aa", "z"]


def test_one_pass_never_uses_more_licences_than_exist(queue: Queue) -> None:
    put(queue, "matlab", 5)
    queue.submit(licences={"matlab": 2}, array="0-9", gpus=1)
    queue.submit(licences={"matlab": 1}, array="0-9", gpus=1)
    queue.start()
    held = queue.sql.row("select * from odc._licence_use()")
    assert (held["used"], held["total"]) == (5, 5)


def test_with_fewer_licences_than_used_jobs_run_on_and_none_start(queue: Queue) -> None:
    put(queue, "matlab", 2)
    job = queue.submit(licences={"matlab": 2})
    assert queue.start() == [job]
    waits = queue.submit(licences={"matlab": 1})
    assert queue.start() == []
    put(queue, "matlab", 1)
    assert queue.start() == []
    [row] = json.loads(queue.sql.value("select odc.list_licences()"))
    assert (row["used"], row["free"], row["jobs"]) == (2, 0, [job])
    with pytest.raises(WrongState, match=f"is in use or needed by 2 jobs: {job}, {waits}"):
        drop(queue, "matlab")
    queue.end(job)
    assert queue.start() == [waits]
