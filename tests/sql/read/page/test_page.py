"""The map and the chart agree with the books, for any queue."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.builders.jobs import ALICE, NOW, Queue, a_cluster, a_job, submit
from tests.support.harness.database import Sql

JOBS = st.lists(
    st.tuples(
        st.integers(1, 3), st.integers(0, 8), st.sampled_from([600, 3600, 90_000]),
        st.sampled_from(["train-1", "eval", "sweep"]),
    ),
    max_size=10,
)  # fmt: skip


def gantt(sql: Sql, hours: float = 24, **more: Any) -> dict[str, Any]:
    arguments = {"types": None, "nodes": None, "offset": 0, "limit": 100, **more}
    return json.loads(
        sql.value(
            "select odc.show_gantt($1, $2, $3, $4, $5, $6, $5)",
            arguments["types"], arguments["nodes"], arguments["offset"], arguments["limit"], NOW,
            NOW + timedelta(hours=hours),
        )
    )  # fmt: skip


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(JOBS)
def test_map_and_chart_agree_with_the_books(sql: Sql, jobs: list[Any]) -> None:
    with sql.trial():
        a_cluster(sql, h100=4, l4=2, cpu_x86=1)
        for nodes, gpus, limit_s, name in jobs:
            spec = a_job(node_count=nodes, gpus_per_node=gpus, time_limit_s=limit_s, name=name)
            submit(sql, spec)
        sql.value("select started from odc.plan_pass(0, $1)", NOW)
        mapped = {
            row["name"]: json.loads(row["body"])
            for row in sql.rows("select name, body from odc.map_nodes($1)", NOW)
        }
        for row in sql.rows(
            "select n.name, n.gpus, f.gpus as free from odc.node as n "
            "join odc.node_free as f on f.node_id = n.id"
        ):
            together = 0
            for _, _, _, mask in mapped[row["name"]]["held"]:
                assert together & mask == 0
                together |= mask
            assert together.bit_count() == row["gpus"] - row["free"]
        chart = gantt(sql)
        assert [node["name"] for node in chart["nodes"]] == list(mapped)
        bars = [(node["name"], bar) for node in chart["nodes"] for bar in node["bars"]]
        running = [
            (n, b["job_id"], len(b["gpu_indexes"])) for n, b in bars if b["kind"] == "running"
        ]
        held = sql.rows(
            "select n.name, a.job_id, a.gpus from odc.allocation as a "
            "join odc.node as n on n.id = a.node_id"
        )
        assert sorted(running) == sorted((r["name"], r["job_id"], r["gpus"]) for r in held)
        ahead = [(n, b["job_id"], b["starts_at"]) for n, b in bars if b["kind"] == "planned"]
        planned = json.loads(sql.value("select odc.list_plan($1)", NOW))["jobs"]
        assert sorted(ahead) == sorted(
            (name, job["id"], job["planned_start_at"])
            for job in planned
            if job["planned_start_at"] and job["planned_start_at"] < chart["to"]
            for name in job["node_names"]
        )
        for _, bar in bars:
            assert bar["likely_end_at"] is None  # nothing has ended yet
            assert bar["starts_at"] <= bar["ends_at"]


def test_chart_pages_have_every_node_once(sql: Sql) -> None:
    a_cluster(sql, h100=12, l4=3)
    seen: list[str] = []
    offset: int | None = 0
    while offset is not None:
        page = gantt(sql, offset=offset, limit=4)
        seen += [node["name"] for node in page["nodes"]]
        offset = page["next"]
        assert page["node_count"] == 15
    assert seen == [f"h100-{n}" for n in range(1, 13)] + [f"l4-{n}" for n in range(1, 4)]
    assert len(gantt(sql, types=["l4"])["nodes"]) == 3
    assert [n["name"] for n in gantt(sql, nodes=["l4-2", "nothing"])["nodes"]] == ["l4-2"]


@pytest.mark.parametrize(
    "names",
    [["n1", "n2", "n10"], ["gpu-01", "gpu-2", "gpu-011"], ["a2-1", "a2-10", "a10-1"], ["a", "b"],
     ["n99999999998", "n99999999999"]],
)  # fmt: skip
def test_names_are_ordered_by_their_numbers(sql: Sql, names: list[str]) -> None:
    ordered = sql.values(
        "select x from unnest($1::text[]) as x order by odc._name_order(x), x", sorted(names)[::-1]
    )
    assert ordered == names


NUMBERED = st.lists(
    st.sampled_from(["n", "gpu-", "ip-", "7", "10", "007", "-", ".", "é", "1234567890"]),
    min_size=1, max_size=6,
).map("".join)  # fmt: skip


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sets(NUMBERED, min_size=2, max_size=20))
def test_names_with_and_without_numbers_have_one_order(sql: Sql, names: set[str]) -> None:
    names = {name for name in names if not re.search(r"\d{11}", name)}
    ordered = sql.values(
        'select x from unnest($1::text[]) as x order by odc._name_order(x), x collate "C"',
        sorted(names),
    )
    assert ordered == sorted(names, key=_counted)


def _counted(name: str) -> tuple[str, str]:
    """Each number as ten digits; C is the order of UTF-8, like Python's."""
    return re.sub(r"\d+", lambda found: f"{int(found[0]):010}", name), name


def test_attempts_are_returned_in_order(sql: Sql) -> None:
    a_cluster(sql, h100=1)
    [job] = submit(sql, a_job())
    assert json.loads(sql.value("select odc.show_attempts($1)", job.job_id)) == []


def test_the_last_task_of_an_array_has_its_own_events_the_newest_kept(sql: Sql) -> None:
    a_cluster(sql, h100=2)
    [array] = submit(sql, a_job(gpus_per_node=8, array="0-1"))
    sql.value("select started from odc.plan_pass(0, $1)", NOW)
    [last] = sql.rows("select id from odc.job where array_task_id = 1")
    assert last["id"] == array.job_id

    def kinds(limit: int) -> list[str]:
        events = json.loads(sql.value("select odc.list_job_events($1, $2)", array.job_id, limit))
        return [event["kind"] for event in events]

    assert kinds(10) == ["submitted", "started"]
    assert kinds(1) == ["started"]


def test_a_running_job_has_an_end_and_others_none(sql: Sql) -> None:
    a_cluster(sql, h100=1)
    [runs] = submit(sql, a_job(gpus_per_node=8, time_limit_s=3600))
    [waits] = submit(sql, a_job(gpus_per_node=8))
    sql.value("select started from odc.plan_pass(0, $1)", NOW)
    later = NOW + timedelta(minutes=10)
    [end] = sql.rows("select * from odc.show_end($1, $2)", runs.job_id, later)
    assert end == {"likely_end_at": None, "ends_at": NOW + timedelta(hours=1)}
    assert sql.rows("select * from odc.show_end($1, $2)", waits.job_id, later) == []


def test_an_expected_end_follows_similar_jobs(queue: Queue) -> None:
    sql = queue.sql
    for _ in range(2):
        job = queue.submit(time_limit_s=3600)
        assert queue.start() == [job]
        queue.move(600)
        queue.end(job)
    sql.value("select odc._fold_run_times()")
    runs = queue.submit(gpus_per_node=8, time_limit_s=3600)
    assert queue.start() == [runs]
    ahead = queue.submit(node_count=2, gpus_per_node=8, time_limit_s=3600)
    assert queue.start() == []
    begun = queue.now
    likely = begun + timedelta(minutes=10)
    assert sql.row("select * from odc.show_end($1, $2)", runs, begun) == {
        "likely_end_at": likely, "ends_at": begun + timedelta(hours=1)
    }  # fmt: skip
    late = begun + timedelta(minutes=9)
    assert sql.row("select * from odc.show_end($1, $2)", runs, late)["likely_end_at"] == likely
    later = begun + timedelta(minutes=30)
    assert sql.row("select * from odc.show_end($1, $2)", runs, later)["likely_end_at"] is None
    end = json.loads(
        sql.value(
            "select odc.show_gantt(null, null, 0, 10, $1, $2, $1)",
            begun, begun + timedelta(hours=24),
        )
    )  # fmt: skip
    ends = {
        bar["job_id"]: (bar["starts_at"], bar["likely_end_at"])
        for node in end["nodes"]
        for bar in node["bars"]
    }
    assert ends[runs] == (iso(begun), iso(likely))
    planned = begun + timedelta(hours=1)
    assert ends[ahead] == (iso(planned), iso(planned + timedelta(minutes=10)))


def iso(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def test_a_job_without_a_limit_has_no_known_end(sql: Sql) -> None:
    a_cluster(sql, h100=1)
    sql.execute("update odc.partition set max_time_limit_s = null")
    [job] = submit(sql, a_job(time_limit_s=2147483647))
    sql.value("select started from odc.plan_pass(0, $1)", NOW)
    [end] = sql.rows("select * from odc.show_end($1, $2)", job.job_id, NOW)
    assert end == {"likely_end_at": None, "ends_at": None}
    [bar] = gantt(sql)["nodes"][0]["bars"]
    assert (bar["likely_end_at"], bar["ends_at"]) == (None, None)


def test_nodes_have_their_memory_and_the_end_of_their_jobs(sql: Sql) -> None:
    a_cluster(sql, h100=1)
    sql.execute("update odc.partition set max_time_limit_s = null")

    def node() -> dict[str, Any]:
        return json.loads(sql.value("select body from odc.map_nodes($1)", NOW))

    empty = node()
    assert (empty["mem_used_mib"], empty["jobs"], empty["free_at"]) == (0, 0, None)
    assert empty["mem_mib"] > 2048
    for limit_s in (600, 3600):
        submit(sql, a_job(gpus_per_node=1, mem_per_node_mib=1024, time_limit_s=limit_s))
    sql.value("select started from odc.plan_pass(0, $1)", NOW)
    busy = node()
    assert (busy["mem_used_mib"], busy["jobs"]) == (2048, 2)
    assert busy["free_at"] == iso(NOW + timedelta(hours=1))
    submit(sql, a_job(gpus_per_node=1, time_limit_s=2147483647))
    sql.value("select started from odc.plan_pass(0, $1)", NOW)
    assert (node()["jobs"], node()["free_at"]) == (3, None)


def test_users_are_listed_by_uid_and_only_once(sql: Sql) -> None:
    a_cluster(sql, h100=1)
    assert json.loads(sql.value("select odc.list_choices()"))["users"] == []
    for uid, user in ((1002, "ann"), (1001, "zoe"), (1002, "ann")):
        submit(sql, a_job(), who=replace(ALICE, uid=uid, user=user))
    found = json.loads(sql.value("select odc.list_choices()"))
    assert found["users"] == ["zoe", "ann"]
    assert found["partitions"] == sorted(found["partitions"]) != []
