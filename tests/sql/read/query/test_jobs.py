"""Lists and single jobs: keys, order, pages, filters."""

from __future__ import annotations

import json
from datetime import timedelta

import msgspec
import pytest

from odcd.api.answers.jobs import Job
from odcd.errors import BadRequest, OdcError, UnknownJob
from tests.sql.read.query.cluster import BOB, NOW, ROOT, Cluster
from tests.support.harness.database import Sql


def test_every_job_has_the_documented_keys_and_types(sql: Sql) -> None:
    cluster = Cluster(sql)
    sql.execute("update odc.partition set policy = 'fifo'")
    ended, running = cluster.submit(gpus=8), cluster.submit(gpus=8, time_limit_s=60)
    assert cluster.plan() == [ended]
    cluster.end(ended, exit_code=3)
    assert cluster.plan() == [running]
    pending = cluster.submit(gpus=8, comment="c", stdout="out-%j", dependency=f"afterany:{running}")
    array = cluster.submit(array="0-9%2", gpus=8)
    cluster.plan()
    listed, _ = cluster.list(ended=True)
    jobs = msgspec.convert(listed, list[Job])
    assert [job.id for job in jobs] == [array, pending, running, ended]
    assert {job.state for job in jobs} == {"PENDING", "RUNNING", "FAILED"} - {"RUNNING"} | {
        "CONFIGURING"
    }
    assert list(listed[0]) == list(Job.__struct_fields__)


def test_an_ended_job_shows_its_outcome(sql: Sql) -> None:
    cluster = Cluster(sql)
    job_id = cluster.submit(gpus=2, name="train", nice=3, time_limit_s=100)
    cluster.plan()
    cluster.move(30)
    cluster.end(job_id, exit_code=3)
    job = cluster.job(job_id)
    assert job["state"] == "FAILED"
    assert (job["exit_code"], job["signal"]) == (3, None)
    assert (job["submitted_at"], job["ended_at"]) == (
        "2026-01-01T00:00:00Z",
        "2026-01-01T00:00:30Z",
    )
    assert job["node_names"] == ["n1"]
    assert (job["gpu_type"], job["gpus"], job["gpus_per_node"], job["node_count"]) == (
        "h100",
        2,
        2,
        1,
    )
    assert (job["name"], job["user"], job["partition"], job["nice"]) == (
        "train",
        "alice",
        "main",
        3,
    )
    assert (job["attempt"], job["restarts"], job["time_limit_s"]) == (1, 0, 100)
    assert job["why"] == []


def test_a_pending_job_shows_its_minimum_number_of_nodes(sql: Sql) -> None:
    cluster = Cluster(sql, nodes=3)
    job_id = cluster.submit(gpus=None, gpus_per_node=8, node_count=2, node_count_max=4)
    keys = ("node_count", "node_count_max", "gpus")
    assert [cluster.job(job_id)[key] for key in keys] == [2, 4, 16]
    cluster.plan()
    assert [cluster.job(job_id)[key] for key in keys] == [3, 4, 24]
    cluster.move(30)
    cluster.end(job_id)
    assert [cluster.job(job_id)[key] for key in keys] == [3, 4, 24]
    attempt = sql.row("select gpus, node_names from odc.attempt where job_id = $1", job_id)
    assert (attempt["gpus"], attempt["node_names"]) == (24, ["n1", "n2", "n3"])


def test_why_names_the_switches_request(sql: Sql) -> None:
    cluster = Cluster(sql, nodes=3)
    sql.execute("update odc.node set topology = array['spine', name]")
    wish = {"gpus": None, "gpus_per_node": 8, "node_count": 3, "switches": 2}
    job_id = cluster.submit(**wish)
    assert cluster.plan() == []
    job = cluster.job(job_id)
    assert (job["reason"], job["switches"], job["switches_wait_s"]) == ("Resources", 2, 300)
    assert job["planned_start_at"] == "2026-01-01T00:05:00Z"
    assert job["why"][0]["text"] == (
        "needs 3 nodes with 8 free GPUs each, and waits up to 5:00 for them to be in at most "
        "2 topology blocks; 3 are free for it now"
    )
    cluster.move(299)
    assert cluster.plan() == []
    cluster.move(1)
    assert cluster.plan() == [job_id]


def test_unlimited_time_is_null(sql: Sql) -> None:
    cluster = Cluster(sql)
    sql.execute("update odc.partition set max_time_limit_s = null")
    job_id = cluster.submit(who=ROOT, time_limit_s=2_147_483_647)
    assert cluster.job(job_id)["time_limit_s"] is None
    cluster.plan()
    assert cluster.job(job_id)["time_limit_s"] is None


def test_live_jobs_are_listed_running_first_then_in_queue_order(sql: Sql) -> None:
    cluster = Cluster(sql, nodes=2)
    first, second = cluster.submit(gpus=8), cluster.submit(gpus=8)
    cluster.plan()
    late, nice = cluster.submit(gpus=8, nice=5), cluster.submit(gpus=8)
    cluster.move(1)
    last = cluster.submit(gpus=8)
    assert cluster.ids() == [first, second, nice, last, late]


def test_pages_join_without_gaps_also_when_jobs_move_on_between_them(sql: Sql) -> None:
    cluster = Cluster(sql, nodes=2)
    jobs = [cluster.submit(gpus=8) for _ in range(7)]
    cluster.plan()
    page, cursor = cluster.list(limit=2)
    assert [job["id"] for job in page] == jobs[:2]
    page, cursor = cluster.list(limit=2, after=cursor)
    assert [job["id"] for job in page] == jobs[2:4]
    # The last job of that page starts and ends before the next page is requested.
    for job_id in jobs[:2]:
        cluster.end(job_id)
    assert cluster.plan() == jobs[2:4]
    cluster.end(jobs[3])
    page, cursor = cluster.list(limit=2, after=cursor)
    assert [job["id"] for job in page] == jobs[4:6]
    page, cursor = cluster.list(limit=2, after=cursor)
    assert [job["id"] for job in page] == jobs[6:]
    assert cursor is None


def test_a_page_that_ends_at_the_last_running_job_goes_on_with_the_pending_ones(sql: Sql) -> None:
    cluster = Cluster(sql)
    running, pending = cluster.submit(gpus=8), cluster.submit(gpus=8)
    cluster.plan()
    _, cursor = cluster.list(limit=1)
    assert cursor == running
    assert cluster.ids(limit=1, after=cursor) == [pending]


def test_all_jobs_page_newest_first(sql: Sql) -> None:
    cluster = Cluster(sql)
    jobs = [cluster.submit() for _ in range(5)]
    page, cursor = cluster.list(ended=True, limit=3)
    assert [job["id"] for job in page] == jobs[:1:-1]
    assert cluster.ids(ended=True, limit=3, after=cursor) == [jobs[1], jobs[0]]


def test_filters_narrow_one_another_down(sql: Sql) -> None:
    cluster = Cluster(sql)
    a = cluster.submit(name="train", gpus=8)
    b = cluster.submit(BOB, name="train", gpus=8)
    c = cluster.submit(BOB, name="eval", gpus=8)
    cluster.plan()
    assert cluster.ids({"user": "bob"}) == [b, c]
    assert cluster.ids({"user": ["bob", "alice"], "name": ["train"]}) == [a, b]
    assert cluster.ids({"state": ["PENDING"]}) == [b, c]
    assert cluster.ids({"state": ["CONFIGURING", "PENDING"], "name": ["train"]}) == [a, b]
    assert cluster.ids({"job_ids": [a, c]}) == [a, c]
    assert cluster.ids({"ids": [{"job_id": b, "tasks": None}]}) == [b]
    assert cluster.ids({"partition": ["main"], "account": ["default"], "qos": ["normal"]}) == [
        a,
        b,
        c,
    ]
    for nobody in ({"user": "x"}, {"name": ["x"]}):
        assert cluster.ids(nobody) == []
        assert cluster.ids(nobody, ended=True) == []
    cluster.end(a)
    assert cluster.ids({"state": ["COMPLETED"]}, ended=True) == [a]
    assert cluster.ids({"state": ["COMPLETED", "PENDING"], "user": "bob"}, ended=True) == [c, b]
    assert cluster.ids({"partition": ["main"]}, ended=True) == [c, b, a]


@pytest.mark.parametrize(
    ("key", "code", "known"),
    [("partition", "OD001", "main"), ("account", "OD002", "default"), ("qos", "OD004", "normal")],
)
def test_a_filter_by_what_does_not_exist_is_refused_with_what_does(
    sql: Sql, key: str, code: str, known: str
) -> None:
    cluster = Cluster(sql)
    with pytest.raises(OdcError) as refused:
        cluster.ids({key: [known, "x"]})
    assert (refused.value.code, '"x" does not exist' in refused.value.message) == (code, True)
    assert known in (refused.value.hint or "")


def test_only_the_requested_fields_are_returned_in_the_documented_order(sql: Sql) -> None:
    cluster = Cluster(sql)
    job_id = cluster.submit()
    jobs, _ = cluster.list(fields=["state", "id", "eta"])
    assert [list(job.items()) for job in jobs] == [
        [("id", job_id), ("state", "PENDING"), ("eta", None)]
    ]


@pytest.mark.parametrize(
    "fields", [["id", "nonsense"], ["queued_at"], ["id; drop table odc.job"], [""], []]
)
def test_unknown_fields_are_refused(sql: Sql, fields: list[str]) -> None:
    cluster = Cluster(sql)
    with pytest.raises(BadRequest):
        cluster.list(fields=fields)


def test_an_array_is_one_row_while_it_waits_and_one_per_task_later(sql: Sql) -> None:
    cluster = Cluster(sql)
    array = cluster.submit(array="1-5,8%2", gpus=8)
    [job] = cluster.show(array)
    assert (job["array_job_id"], job["array_task_id"], job["array_tasks"]) == (
        array,
        None,
        "1-5,8%2",
    )
    [element] = cluster.plan()
    rest, started = cluster.show(array)
    assert (rest["id"], rest["array_tasks"]) == (array, "2-5,8%2")
    assert (started["id"], started["array_job_id"], started["array_task_id"]) == (element, array, 1)
    assert started["array_tasks"] is None
    assert [job["id"] for job in cluster.show(array, "{[1,2)}")] == [element]
    assert [job["id"] for job in cluster.show(array, "{[2,3)}")] == [array]
    assert cluster.ids({"ids": [{"job_id": array, "tasks": "{[1,2)}"}]}) == [element]


def test_the_last_task_of_an_array_takes_the_arrays_own_id(sql: Sql) -> None:
    cluster = Cluster(sql, nodes=2)
    array = cluster.submit(array="0-1", gpus=8)
    assert len(cluster.plan()) == 2
    last, first = cluster.show(array)
    assert (last["id"], last["array_job_id"], last["array_task_id"]) == (array, array, 1)
    assert (first["array_job_id"], first["array_task_id"]) == (array, 0)
    assert [job["id"] for job in cluster.show(array, "{[1,2)}")] == [array]
    assert cluster.ids(ended=True) == [first["id"], array]
    assert cluster.explain(array)["state"] == "CONFIGURING"


def test_unknown_jobs_are_named(sql: Sql) -> None:
    cluster = Cluster(sql)
    array = cluster.submit(array="0-3")
    with pytest.raises(UnknownJob, match="job 1000000000 does not exist"):
        cluster.show(10**9)
    with pytest.raises(UnknownJob, match=f"job {array} has no task 7"):
        cluster.show(array, "{[7,8)}")
    with pytest.raises(UnknownJob, match="array 1000000000 does not exist"):
        cluster.ended(10**9, "{[7,8)}")
    with pytest.raises(UnknownJob):
        cluster.explain(10**9)


def test_jobs_have_ended_only_when_all_of_the_selection_have(sql: Sql) -> None:
    cluster = Cluster(sql)
    array = cluster.submit(array="0-2", gpus=4)
    first, second = cluster.plan()
    assert cluster.ended(array) is None
    cluster.end(first, exit_code=2)
    assert cluster.ended(array, "{[0,1)}") == [
        {"id": first, "array_task_id": 0, "state": "FAILED", "exit_code": 2, "signal": None}
    ]
    assert cluster.ended(array, "{[0,2)}") is None
    cluster.end(second)
    assert cluster.ended(array) is None
    [third] = cluster.plan()
    assert cluster.ended(array) is None
    settled = "select job_id from odc.settled_among($1)"
    assert sql.values(settled, [array, first, third]) == [first]
    cluster.end(third)
    states = {job["array_task_id"]: job["state"] for job in cluster.ended(array) or []}
    assert states == {0: "FAILED", 1: "COMPLETED", 2: "COMPLETED"}
    assert sql.values(settled, [array, first, third]) == [array, first, third]


def test_the_queue_view_agrees_with_the_queue(sql: Sql) -> None:
    cluster = Cluster(sql)
    running, waiting = cluster.submit(gpus=8, time_limit_s=60), cluster.submit(gpus=8)
    cluster.plan()
    rows = sql.rows("select id, state, reason, planned_start_at from odc.queue order by id")
    assert [(r["id"], r["state"], r["reason"]) for r in rows] == [
        (running, "CONFIGURING", None),
        (waiting, "PENDING", "Resources"),
    ]
    assert rows[1]["planned_start_at"] == NOW + timedelta(seconds=60)


@pytest.mark.long
def test_ten_thousand_pending_jobs_are_one_page(sql: Sql) -> None:
    cluster = Cluster(sql)
    first = cluster.submit(gpus=8)
    sql.execute(
        "insert into odc.job "
        "select (jsonb_populate_record(j, jsonb_build_object('id', j.id + n))).* "
        "from odc.job as j, generate_series(1, 10000) as n where j.id = $1",
        first,
    )
    sql.execute(
        "insert into odc.pending ("
        "job_id, shape_id, uid, account_id, qos_id, nice, queued_at, time_limit_s) "
        "select id, shape_id, uid, account_id, qos_id, nice, submitted_at, time_limit_s "
        "from odc.job where id > $1",
        first,
    )
    jobs, cursor = cluster.list(limit=10_000, fields=["id"])
    assert [job["id"] for job in jobs] == list(range(first, first + 10_000))
    assert cursor == -(first + 9_999)
    assert json.dumps(cluster.ids(after=cursor)) == json.dumps([first + 10_000])
