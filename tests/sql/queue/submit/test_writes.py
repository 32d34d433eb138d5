"""The rows that submit writes, and that it writes them once."""

from __future__ import annotations

from datetime import timedelta

import pytest

from odcd.jobs.submission import prepare
from tests.support.builders.jobs import ALICE, BOB, NOW, Queue, a_job, submit, submit_requests

COLD = ("job", "pending", "event", "job_text", "array_job", "dependency", "idempotency", "shape")


def counts(queue: Queue) -> dict[str, int]:
    return {table: queue.sql.value(f"select count(*) from odc.{table}") for table in COLD}


def test_a_job_is_stored_as_requested(queue: Queue) -> None:
    job = queue.job(
        queue.submit(
            name="train", args=["a", "b c"], umask=0o077, stdin="in", stdout="%j.out",
            stderr="%j.err",
            open_mode="append", comment="why", nice=7, signal_number=10, signal_before_s=60,
            signal_batch=True, requeue=False, submit_host="login", environment={"A": "1"}, ntasks=2,
            time_limit_s=60,
        )
    )  # fmt: skip
    assert job | {
        "name": "train", "kind": "batch", "user_name": "alice", "uid": 1001, "gid": 100,
        "args": ["a", "b c"], "umask": 0o077, "stdin": "in", "stdout": "%j.out", "stderr": "%j.err",
        "open_mode": "append", "comment": "why", "nice": 7, "signal_number": 10,
        "signal_before_s": 60, "signal_batch": True, "requeue": False, "submit_host": "login",
        "time_limit_s": 60, "submitted_at": NOW, "state": None, "ended_at": None,
    } == job  # fmt: skip
    assert (
        queue.sql.value("select content from odc.job_text where digest = $1", job["script_digest"])
        == "#!/bin/sh\ntrue\n"
    )


def test_a_plain_job_is_ready_at_once(queue: Queue) -> None:
    job = queue.submit()
    pending = queue.pending(job)
    assert (pending["ready"], pending["eligible_at"], pending["queued_at"]) == (True, NOW, NOW)
    assert queue.events(job) == ["submitted"]


def test_a_held_job_waits_for_its_release(queue: Queue) -> None:
    pending = queue.pending(queue.submit(hold=True))
    assert (pending["held"], pending["ready"], pending["eligible_at"]) == ("user", False, None)


@pytest.mark.parametrize(("seconds", "begun"), [(-60, True), (0, True), (60, False)])
def test_a_job_waits_for_its_begin_time(queue: Queue, seconds: int, begun: bool) -> None:
    pending = queue.pending(queue.submit(begin_at=NOW + timedelta(seconds=seconds)))
    assert (pending["begun"], pending["ready"]) == (begun, begun)


def test_scripts_and_environments_are_kept_once(queue: Queue) -> None:
    before = counts(queue)["job_text"]
    submit(queue.sql, *(a_job(environment={"A": "1"}) for _ in range(5)))
    queue.submit(environment={"A": "1"}, array="0-99")
    assert counts(queue)["job_text"] == before + 2


def test_ids_follow_the_order_of_requests_and_jobs(queue: Queue) -> None:
    made = [
        prepare(
            who,
            [a_job(name=f"{who.user}-{n}", gpus=n % 2) for n in range(3)],
            key=None,
            dry_run=False,
        )
        for who in (ALICE, BOB)
    ]
    answers = submit_requests(queue.sql, [m.request for m in made], made[0].texts | made[1].texts)
    ids = [answer.job_id for request in answers for answer in request]
    assert ids == list(range(ids[0], ids[0] + 6))
    names = queue.sql.values("select name from odc.job where id = any ($1) order by id", ids)
    assert names == ["alice-0", "alice-1", "alice-2", "bob-0", "bob-1", "bob-2"]


def test_a_refused_request_does_not_affect_the_others(queue: Queue) -> None:
    specs = [[a_job(name="a")], [a_job(), a_job(qos="gold")], [a_job(name="c"), a_job(name="d")]]
    made = [prepare(ALICE, s, key=None, dry_run=False) for s in specs]
    answers = submit_requests(queue.sql, [m.request for m in made], made[0].texts)
    assert [[a.code for a in request] for request in answers] == [
        [None],
        [None, "OD004"],
        [None, None],
    ]
    assert [[a.job_id is None for a in request] for request in answers] == [
        [False], [True, True], [False, False],
    ]  # fmt: skip
    assert queue.sql.values("select name from odc.job order by id") == ["a", "c", "d"]


@pytest.mark.parametrize("fields", [{"gpus": 1}, {"gpus": 3, "array": "0-9"}, {"ntasks": 3}])
def test_a_dry_run_answers_without_an_id_and_writes_nothing(
    queue: Queue, fields: dict[str, object]
) -> None:
    before = counts(queue)
    [answer] = submit(queue.sql, a_job(script="#!/bin/dry\n", **fields), dry_run=True, key="k")
    assert (answer.job_id, answer.code) == (None, None)
    [answer] = submit(queue.sql, a_job(qos="gold", **fields), dry_run=True)
    assert answer.code == "OD004"
    assert counts(queue) == before


@pytest.mark.long
def test_a_batch_of_10000_jobs_is_accepted_in_one_call(queue: Queue) -> None:
    answers = submit(queue.sql, *(a_job(name=f"j{n}", gpus=n % 3) for n in range(10_000)))
    assert len({answer.job_id for answer in answers}) == 10_000
    assert counts(queue)["pending"] == 10_000
    assert counts(queue)["shape"] == 3


# -- idempotency keys -----------------------------------------------------------------------------


def test_a_request_sent_again_under_its_key_has_the_first_answer(queue: Queue) -> None:
    first = submit(queue.sql, a_job(), a_job(array="0-3"), key="k")
    before = counts(queue)
    assert (
        submit(queue.sql, a_job(), a_job(array="0-3"), key="k", now=NOW + timedelta(hours=1))
        == first
    )
    assert counts(queue) == before


def test_another_request_under_the_same_key_is_refused(queue: Queue) -> None:
    submit(queue.sql, a_job(), key="k")
    [answer] = submit(queue.sql, a_job(name="other"), key="k")
    assert (answer.job_id, answer.code) == (None, "OD014")
    assert '"k"' in (answer.message or "")


def test_a_key_is_a_users_own(queue: Queue) -> None:
    [alice] = submit(queue.sql, a_job(), key="k")
    [bob] = submit(queue.sql, a_job(), key="k", who=BOB)
    assert alice.job_id != bob.job_id
    assert bob.code is None


def test_a_key_used_twice_in_one_call_makes_one_job(queue: Queue) -> None:
    one = prepare(ALICE, [a_job()], key="k", dry_run=False)
    other = prepare(ALICE, [a_job(name="other")], key="k", dry_run=False)
    answers = submit_requests(
        queue.sql, [one.request, one.request, other.request], one.texts | other.texts
    )
    assert answers[0] == answers[1]
    assert answers[0][0].job_id is not None
    assert answers[2][0].code == "OD014"
    assert counts(queue)["job"] == 1


def test_a_refused_request_leaves_its_key_free(queue: Queue) -> None:
    refused = prepare(ALICE, [a_job(qos="gold")], key="k", dry_run=False)
    good = prepare(ALICE, [a_job()], key="k", dry_run=False)
    answers = submit_requests(queue.sql, [refused.request, good.request], refused.texts)
    assert answers[0][0].code == "OD004"
    assert answers[1][0].job_id is not None


def test_the_first_answer_stands_even_when_the_request_would_be_refused_now(queue: Queue) -> None:
    first = submit(queue.sql, a_job(), key="k")
    queue.sql.execute("update odc.partition set state = 'INACTIVE'")
    assert submit(queue.sql, a_job(), key="k") == first


# -- arrays ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "count", "open_count"),
    [("0-9", 10, 10), ("0-9%4", 10, 4), ("1,3,5-7", 5, 5), ("0-100:10", 11, 11), ("7", 1, 1)],
)
def test_an_array_is_one_row_whatever_its_size(
    queue: Queue, text: str, count: int, open_count: int
) -> None:
    array = queue.submit(array=text)
    pending = queue.pending(array)
    assert queue.job(array)["array_job_id"] == array
    assert pending["open_count"] == open_count
    assert queue.sql.value("select odc._task_count($1)", pending["tasks"]) == count
    assert queue.sql.value("select task_count from odc.array_job where job_id = $1", array) == count
    assert counts(queue)["job"] == 1


def test_an_array_of_a_million_tasks_costs_no_more_than_it_uses(queue: Queue) -> None:
    array = queue.submit(array="0-999999", ntasks=1)
    started = queue.start()
    assert len(started) == 128  # as many as there are CPUs
    assert queue.job(started[-1])["array_task_id"] == 127
    queue.end(*started[:64])
    queue.cancel((array, "{[1000,1000000)}"))
    assert (
        queue.sql.value("select odc._task_count(tasks) from odc.pending where job_id = $1", array)
        == 872
    )
    assert counts(queue)["job"] == 1 + 128 + 1
