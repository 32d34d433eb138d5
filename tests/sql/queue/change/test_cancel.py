"""Cancelling: the named jobs in any state, and no others."""

from __future__ import annotations

import json
from typing import Any

import pytest

from odcd.errors import BadRequest, Refused
from tests.support.builders.jobs import ALICE, BOB, ROOT, Queue, a_cluster, a_job, submit


def test_a_pending_job_is_cancelled_at_once(queue: Queue) -> None:
    job = queue.submit()
    queue.move(60)
    assert queue.cancel(job) == {job: "cancelled"}
    row = queue.job(job)
    assert (row["state"], row["ended_at"], row["ended_by"]) == ("CANCELLED", queue.now, "alice")
    assert (row["started_at"], row["attempt"], row["exit_code"]) == (None, None, None)
    assert queue.events(job) == ["submitted", "ended"]
    assert queue.start() == []


def test_a_cancelled_running_job_gets_an_intent(queue: Queue) -> None:
    job = queue.submit(gpus=2)
    queue.start()
    assert queue.cancel(job) == {job: "cancelling"}
    running = queue.running(job)
    assert (running["state"], running["intent"], running["intent_by"]) == (
        "COMPLETING", "cancel", "alice",
    )  # fmt: skip
    assert queue.cancel(job) == {job: "cancelling"}
    assert queue.events(job).count("cancelled") == 1
    queue.end(job, exit_code=143)
    assert queue.state(job) == "CANCELLED"
    assert queue.job(job)["ended_by"] == "alice"


def test_cancelling_an_ended_job_is_no_error(queue: Queue) -> None:
    job = queue.submit()
    queue.start()
    queue.end(job)
    assert queue.cancel(job) == {job: "ended"}
    assert queue.state(job) == "COMPLETED"


def test_a_cancel_overtakes_a_requeue(queue: Queue) -> None:
    job = queue.submit()
    queue.start()
    queue.requeue(job)
    queue.cancel(job)
    queue.end(job)
    assert queue.state(job) == "CANCELLED"


def test_a_requeued_job_that_is_cancelled_keeps_the_count_of_its_attempts(queue: Queue) -> None:
    job = queue.submit()
    queue.start()
    queue.requeue(job)
    queue.end(job)
    queue.cancel(job)
    assert (queue.state(job), queue.job(job)["attempt"]) == ("CANCELLED", 1)


def test_an_unknown_job_is_refused_and_the_others_are_cancelled(queue: Queue) -> None:
    job = queue.submit()
    assert queue.cancel(999_999, job) == {999_999: "OD006", job: "cancelled"}


def test_another_users_job_is_refused(queue: Queue) -> None:
    job = queue.submit(BOB)
    [answer] = queue.change("cancel", job)
    assert (answer["code"], answer["message"]) == ("OD013", f"job {job} belongs to bob")
    assert queue.cancel(job, who=ROOT) == {job: "cancelled"}
    assert queue.job(job)["ended_by"] == "root"


def test_a_job_named_twice_is_one(queue: Queue) -> None:
    job = queue.submit()
    answers = queue.change("cancel", job, job)
    assert [a["outcome"] for a in answers] == ["cancelled"]


def test_dependencies_on_a_cancelled_job_are_judged_at_once(queue: Queue) -> None:
    job = queue.submit()
    waiting = queue.submit(dependency=f"afterany:{job}")
    queue.cancel(job)
    assert queue.start() == [waiting]


# -- filters --------------------------------------------------------------------------------------


@pytest.fixture
def crowd(queue: Queue) -> dict[str, int]:
    """Jobs of two users that each differ in one field, and an ended job."""
    a_cluster(queue.sql, h100=3)
    queue.sql.execute("insert into odc.partition (name, all_nodes) values ('side', true)")
    queue.sql.execute("insert into odc.account (name) values ('lab')")
    queue.sql.execute("insert into odc.qos (name) values ('high')")
    queue.sql.execute("select odc._regroup_nodes()")
    ended = queue.submit(name="ended")
    running = queue.submit(name="running")
    queue.start()
    queue.end(ended)
    return {
        "ended": ended,
        "running": running,
        "plain": queue.submit(name="plain"),
        "named": queue.submit(name="named"),
        "side": queue.submit(name="x", partitions=["side"]),
        "either": queue.submit(name="x", partitions=["main", "side"]),
        "lab": queue.submit(name="x", account="lab"),
        "high": queue.submit(name="x", qos="high"),
        "array": queue.submit(name="x", array="0-9"),
        "bob": queue.submit(BOB, name="plain"),
    }


FILTERS: list[tuple[dict[str, Any], set[str]]] = [
    ({"name": ["plain"]}, {"plain"}),
    ({"name": "plain"}, {"plain"}),
    ({"name": ["plain", "named", "ended"]}, {"plain", "named"}),
    ({"partition": ["side"]}, {"side", "either"}),
    ({"account": ["lab"]}, {"lab"}),
    ({"qos": ["high"]}, {"high"}),
    ({"state": ["RUNNING", "CONFIGURING"]}, {"running"}),
    ({"state": ["PENDING"], "name": ["x"], "qos": ["normal"]}, {"side", "either", "lab", "array"}),
    ({"user": "alice", "name": ["plain"]}, {"plain"}),
    ({"user": "bob"}, set()),
    ({"name": []}, set()),
    ({"all": True}, {"running", "plain", "named", "side", "either", "lab", "high", "array"}),
]


@pytest.mark.parametrize(("filters", "chosen"), FILTERS, ids=range(len(FILTERS)))
def test_a_filter_selects_only_the_users_own_live_jobs(
    queue: Queue, crowd: dict[str, int], filters: dict[str, Any], chosen: set[str]
) -> None:
    assert queue.cancel(**filters).keys() == {crowd[name] for name in chosen}
    for name, job in crowd.items():
        touched = queue.state(job) in ("CANCELLED", "COMPLETING")
        assert touched == (name in chosen), name


def test_an_operators_filter_selects_jobs_of_all_users(queue: Queue, crowd: dict[str, int]) -> None:
    assert queue.cancel(name=["plain"], who=ROOT).keys() == {crowd["plain"], crowd["bob"]}
    assert queue.cancel(user="bob", who=ROOT) == {}
    assert len(queue.cancel(all=True, who=ROOT)) == 7


def test_filters_narrow_ids_down(queue: Queue, crowd: dict[str, int]) -> None:
    jobs = list(crowd.values())
    assert queue.cancel(*jobs, name=["named"]) == {crowd["named"]: "cancelled"}
    assert queue.cancel(job_ids=jobs, qos="high") == {crowd["high"]: "cancelled"}


def test_a_cancel_without_ids_and_filters_is_refused(queue: Queue) -> None:
    job = queue.submit()
    with pytest.raises(BadRequest, match="the request selects no jobs"):
        queue.cancel()
    assert queue.state(job) == "PENDING"


@pytest.mark.parametrize(
    ("filters", "code"),
    [
        ({"partition": ["main", "gpu"]}, "OD001"),
        ({"account": "physics"}, "OD002"),
        ({"qos": ["gold"]}, "OD004"),
    ],
)
def test_a_filter_by_what_does_not_exist_is_refused(
    queue: Queue, filters: dict[str, Any], code: str
) -> None:
    job = queue.submit()
    for ids in ([], [job]):
        with pytest.raises(Refused) as refusal:
            queue.cancel(*ids, **filters)
        assert refusal.value.code == code
    assert queue.state(job) == "PENDING"


@pytest.mark.long
def test_ten_thousand_pending_jobs_are_cancelled_in_one_call(queue: Queue) -> None:
    submit(queue.sql, *(a_job(name=f"j{n}", ntasks=1) for n in range(10_000)))
    outcomes = queue.cancel(all=True)
    assert set(outcomes.values()) == {"cancelled"}
    assert len(outcomes) == 10_000
    assert queue.sql.value("select count(*) from odc.job where state = 'CANCELLED'") == 10_000


# -- arrays ---------------------------------------------------------------------------------------


def test_an_array_is_cancelled_with_all_its_tasks(queue: Queue) -> None:
    array = queue.submit(array="0-9%3")
    ended, *running = queue.start()
    queue.end(ended)
    outcomes = queue.cancel(array)
    assert outcomes == {array: "cancelled"} | dict.fromkeys(running, "cancelling")
    assert queue.job(array)["array_tasks"] == "3-9"
    queue.end(*running)
    assert queue.sql.row("select * from odc.array_job") | {
        "ended_ok": 1, "ended_not_ok": 9, "running": 0,
    } == queue.sql.row("select * from odc.array_job")  # fmt: skip
    assert queue.cancel(array) == {array: "ended"}


def test_a_waiting_task_is_cut_out_of_its_range(queue: Queue) -> None:
    array = queue.submit(array="0-9", hold=True)
    queue.cancel((array, "{[3,4)}"))
    task = queue.task(array, 3)
    assert queue.state(task) == "CANCELLED"
    assert tasks_waiting(queue, array) == "0-2,4-9"
    assert queue.state(array) == "PENDING"


def test_several_waiting_tasks_are_cut_out_as_one_row(queue: Queue) -> None:
    array = queue.submit(array="0-9", hold=True)
    queue.cancel((array, "{[1,3),[7,20)}"))
    rows = queue.sql.rows("select array_tasks, state from odc.job where state is not null")
    assert rows == [{"array_tasks": "1-2,7-9", "state": "CANCELLED"}]
    assert tasks_waiting(queue, array) == "0,3-6"


def test_tasks_named_one_by_one_are_all_cancelled(queue: Queue) -> None:
    array = queue.submit(array="0-9", hold=True)
    queue.cancel(*((array, f"{{[{n},{n + 2})}}") for n in range(5)))
    assert tasks_waiting(queue, array) == "6-9"
    assert queue.cancel(*((array, f"{{[{n},{n + 1})}}") for n in range(6, 10))) == {
        array: "cancelled"
    }
    assert queue.sql.value("select ended_not_ok from odc.array_job") == 10


def test_tasks_and_their_whole_array_named_together_are_the_array(queue: Queue) -> None:
    array = queue.submit(array="0-9", hold=True)
    queue.cancel((array, "{[1,3)}"), array)
    assert queue.state(array) == "CANCELLED"
    assert queue.sql.value("select count(*) from odc.job") == 1


def test_the_last_waiting_tasks_take_the_ranges_row(queue: Queue) -> None:
    array = queue.submit(array="0-1", hold=True)
    queue.cancel((array, "{[0,1)}"))
    queue.cancel((array, "{[1,2)}"))
    assert queue.job(array) | {"array_task_id": 1, "state": "CANCELLED"} == queue.job(array)


def test_running_and_waiting_tasks_are_named_alike(queue: Queue) -> None:
    array = queue.submit(array="0-9%2")
    queue.start()
    outcomes = queue.cancel((array, "{[1,4)}"))
    assert sorted(outcomes.values()) == ["cancelled", "cancelling"]
    assert queue.state(queue.task(array, 1)) == "COMPLETING"
    assert tasks_waiting(queue, array) == "4-9"


def test_a_task_by_its_own_id_is_that_task_alone(queue: Queue) -> None:
    array = queue.submit(array="0-3")
    queue.start()
    task = queue.task(array, 1)
    assert queue.cancel(task) == {task: "cancelling"}


@pytest.mark.parametrize("tasks", ["{[4,9)}", "{[100,101)}"])
def test_tasks_an_array_does_not_have_are_refused(queue: Queue, tasks: str) -> None:
    array = queue.submit(array="0-3")
    [answer] = queue.change("cancel", (array, tasks))
    assert answer["code"] == "OD006"
    assert f"array {array} has no task" in answer["message"]


def test_a_freed_place_of_the_throttle_goes_to_the_next_task(queue: Queue) -> None:
    array = queue.submit(array="0-9%2")
    first, _ = queue.start()
    assert queue.start() == []
    queue.cancel(first)
    queue.end(first)
    assert len(queue.start()) == 1
    assert queue.pending(array)["open_count"] == 0


# -- signals --------------------------------------------------------------------------------------


def test_a_signal_goes_to_running_jobs_and_cancels_nothing(queue: Queue) -> None:
    running = queue.submit()
    queue.start()
    pending = queue.submit(hold=True)
    answers = {a["job_id"]: a for a in queue.change(
        "cancel", running, pending, more=", $4", arguments=[10]
    )}  # fmt: skip
    assert (answers[running]["outcome"], answers[running]["attempt"]) == ("signal", 1)
    assert answers[pending]["code"] == "OD012"
    assert (queue.state(running), queue.state(pending)) == ("CONFIGURING", "PENDING")


def tasks_waiting(queue: Queue, array: int) -> str:
    return queue.sql.value(
        "select odc._task_text(tasks, null) from odc.pending where job_id = $1", array
    )


def test_the_owner_is_known_by_uid_not_by_name(queue: Queue) -> None:
    job = queue.submit(ALICE)
    impostor = type(ALICE)(user="alice", uid=4711, gid=1, operator=False)
    assert queue.cancel(job, who=impostor) == {job: "OD013"}


def test_a_cancel_is_divided_by_the_jobs_that_wait_for_its_jobs(queue: Queue) -> None:
    """Before: 100 jobs in one part, each with up to 10,000 that are judged when it ends."""
    jobs = [queue.submit(hold=True) for _ in range(6)]
    for _ in range(10):
        terms = [jobs[1]] * 30 + [jobs[2]] * 30
        queue.submit(dependency=f"afterany:{':'.join(map(str, terms))}")
    parts = queue.sql.values(
        "select part from odc.divide_change($1::jsonb, $2::jsonb, null, false, 4) order by job_id",
        json.dumps({"user": "alice", "uid": 1001, "operator": False}),
        json.dumps({"ids": [{"job_id": job, "tasks": None} for job in jobs]}),
    )
    # Jobs 1 and 2 count as four rows each.
    assert parts == [0, 0, 1, 2, 2, 2]
