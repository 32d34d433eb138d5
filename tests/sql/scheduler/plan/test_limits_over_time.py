"""Limits and licences over time: reserved for protected jobs and given back as nodes are."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from tests.sql.limits.account.books import a_limit, a_qos, a_user, an_account
from tests.sql.limits.licence.test_licences import put
from tests.support.builders.jobs import ALICE, BOB, Queue

HOUR, DAY = 3600, 86400
TEN_DAYS = 10 * DAY


@pytest.fixture
def easy(queue: Queue) -> Queue:
    """Two nodes, first come, first served, one protected job for each set of nodes and limit."""
    queue.sql.execute("update odc.partition set policy = 'fifo'")
    queue.sql.execute("update odc.policy set plan_depth = 1 where name = 'fifo'")
    return queue


def planned(queue: Queue) -> dict[int, float]:
    """Seconds until the planned start of each protected job."""
    rows = queue.sql.rows("select job_id, planned_start_at from odc.planned")
    return {row["job_id"]: (row["planned_start_at"] - queue.now).total_seconds() for row in rows}


def test_a_job_behind_does_not_take_the_only_licence_of_a_planned_job(easy: Queue) -> None:
    put(easy, "matlab", 1)
    small = easy.submit(BOB, gpus=2, time_limit_s=HOUR)
    assert easy.start() == [small]
    first = easy.submit(node_count=2, gpus_per_node=7, licences={"matlab": 1}, time_limit_s=HOUR)
    long = easy.submit(BOB, gpus=1, licences={"matlab": 1}, time_limit_s=TEN_DAYS)
    short = easy.submit(BOB, gpus=1, licences={"matlab": 1}, time_limit_s=HOUR)
    assert easy.start() == [short], "it gives the licence back in time"
    assert planned(easy) == {first: HOUR}
    easy.move(HOUR)
    easy.end(small, short)
    assert easy.start() == [first]
    assert easy.state(long) == "PENDING"


def test_a_job_for_all_licences_does_not_starve_behind_jobs_for_one(easy: Queue) -> None:
    put(easy, "matlab", 4)
    holders = [
        easy.submit(BOB, gpus=1, licences={"matlab": 1}, time_limit_s=n * HOUR)
        for n in (1, 1, 2, 2)
    ]
    assert easy.start() == holders
    every = easy.submit(gpus=1, licences={"matlab": 4}, time_limit_s=HOUR)
    stream = [easy.submit(BOB, gpus=1, licences={"matlab": 1}, time_limit_s=HOUR) for _ in range(4)]
    assert easy.start() == []
    assert planned(easy) == {every: 2 * HOUR}
    easy.move(HOUR)
    easy.end(*holders[:2])
    assert easy.start() == stream[:2], "they end when the other holders do"
    assert planned(easy) == {every: HOUR}
    easy.move(1)
    stream.append(easy.submit(BOB, gpus=1, licences={"matlab": 1}, time_limit_s=60))
    easy.end(holders[2])
    assert easy.start() == [stream[4]], "the others would run beyond its planned start"
    easy.move(HOUR - 1)
    easy.end(holders[3], *stream[:2], stream[4])
    assert easy.start() == [every]


@pytest.mark.parametrize(
    ("scope", "per", "what", "value"),
    [
        ("account", "group", "gpus", 4),
        ("account", "group", "cpus", 4),
        ("account", "group", "nodes", 4),
        ("account", "group", "jobs", 4),
        ("account", "user", "gpus", 4),
        ("qos", "group", "gpus", 4),
        ("qos", "user", "cpus", 4),
        ("qos", "account", "gpus", 4),
        ("partition", "group", "gpus", 4),
        ("partition", "user", "nodes", 4),
    ],
)
def test_a_job_for_all_of_a_limit_does_not_starve_behind_jobs_for_some(
    easy: Queue, scope: str, per: str, what: str, value: int
) -> None:
    account = an_account(easy.sql, "lab")
    ids = {"account": account, "qos": a_qos(easy.sql, "shared"), "partition": 1}
    a_limit(easy.sql, scope, ids[scope], per, what, value)
    more: dict[str, Any] = {"account": "lab", "qos": "shared", "gpu_type": "h100"}
    one = {"gpus_per_node": 1, "cpus_per_task": 1, **more}
    # Members of a gang are counted by every limit except that on jobs.
    nodes = 1 if what == "jobs" else 2
    big = {"node_count": nodes, "ntasks": nodes, "gpus_per_node": 2, "cpus_per_task": 2, **more}
    if what == "nodes":
        a_limit(easy.sql, scope, ids[scope], per, what, 2)
    holder = easy.submit(**one, time_limit_s=HOUR)
    assert easy.start() == [holder]
    if what == "jobs":
        a_limit(easy.sql, scope, ids[scope], per, what, 1)
    first = easy.submit(**big, time_limit_s=HOUR)
    stream = [easy.submit(**one, time_limit_s=limit) for limit in (2 * HOUR, HOUR, HOUR)]
    started = easy.start()
    assert stream[0] not in started
    assert planned(easy) == {first: HOUR}
    easy.move(HOUR)
    easy.end(holder, *started)
    assert first in easy.start()


def test_a_job_over_a_limit_is_planned_for_when_the_limit_allows_it(easy: Queue) -> None:
    a_limit(easy.sql, "qos", 1, "user", "jobs", 1)
    first = easy.submit(gpus=8, gpu_type="h100", time_limit_s=HOUR)
    gang = easy.submit(node_count=2, gpus_per_node=8, gpu_type="h100", time_limit_s=HOUR)
    long = easy.submit(BOB, gpus=8, gpu_type="h100", time_limit_s=TEN_DAYS)
    assert easy.start() == [first]
    assert planned(easy) == {gang: HOUR, long: 2 * HOUR}
    row = easy.sql.row("select reason, why from odc.pending_job where id = $1", gang)
    assert row["reason"] == "QOSMaxJobsPerUserLimit"
    assert json.loads(row["why"])[0]["until"] == "2026-01-01T01:00:00Z"


def test_a_job_over_a_limit_that_no_job_gives_back_is_not_planned(easy: Queue) -> None:
    a_limit(easy.sql, "qos", 1, "user", "jobs", 1)
    endless = easy.submit(gpus=1, gpu_type="h100", time_limit_s=None)
    over = easy.submit(node_count=2, gpus_per_node=8, gpu_type="h100", time_limit_s=HOUR)
    other = easy.submit(BOB, gpus=7, gpu_type="h100", time_limit_s=TEN_DAYS)
    easy.sql.execute("update odc.pending set time_limit_s = 2147483647 where job_id = $1", endless)
    assert easy.start() == [endless, other]
    assert planned(easy) == {}
    assert easy.sql.value("select reason from odc.limited") == "QOSMaxJobsPerUserLimit"
    assert easy.state(over) == "PENDING"


def test_gpu_minutes_are_reserved_for_a_planned_job_and_never_given_back(easy: Queue) -> None:
    lab = an_account(easy.sql, "lab")
    a_limit(easy.sql, "account", lab, "group", "gpu_minutes", 16 * 60 + 60)
    hold = easy.submit(BOB, gpus=1, gpu_type="h100", time_limit_s=HOUR)
    assert easy.start() == [hold]
    shape = {"gpu_type": "h100", "account": "lab"}
    gang = easy.submit(node_count=2, gpus_per_node=8, **shape, time_limit_s=HOUR)
    one, two = (easy.submit(gpus=1, **shape, time_limit_s=n * HOUR // 2) for n in (2, 1))
    assert easy.start() == [one], "only 60 GPU-minutes are left beside the planned job"
    assert planned(easy) == {gang: HOUR}
    assert easy.state(two) == "PENDING"


def test_jobs_over_a_limit_do_not_keep_a_job_without_nodes_from_its_protection(
    easy: Queue,
) -> None:
    a_limit(easy.sql, "qos", 1, "user", "jobs", 1)
    running = [easy.submit(who, gpus=1, time_limit_s=2 * HOUR) for who in (ALICE, BOB)]
    assert easy.start() == running
    waits = [easy.submit(who, gpus=1, time_limit_s=HOUR) for who in (ALICE, ALICE, BOB)]
    gang = easy.submit(a_user(3), node_count=2, gpus_per_node=8, time_limit_s=HOUR)
    assert easy.start() == []
    # One of each set of nodes and of each limit; the gang is planned after the jobs ahead of it.
    assert planned(easy) == {waits[0]: 2 * HOUR, waits[2]: 2 * HOUR, gang: 3 * HOUR}


def test_no_limit_is_kept_for_a_job_behind_the_protected_ones(easy: Queue) -> None:
    put(easy, "matlab", 2)
    holder = easy.submit(gpus=1, gpu_type="h100", licences={"matlab": 1}, time_limit_s=2 * HOUR)
    assert easy.start() == [holder]
    gang = easy.submit(node_count=2, gpus_per_node=8, time_limit_s=HOUR)
    behind = easy.submit(gpus=1, licences={"matlab": 2}, time_limit_s=HOUR)
    last = easy.submit(BOB, gpus=1, licences={"matlab": 1}, time_limit_s=HOUR)
    assert easy.start() == [last], "as with nodes: only protected jobs keep anything"
    assert planned(easy) == {gang: 2 * HOUR}
    reason = easy.sql.value("select reason from odc.pending_job where id = $1", behind)
    assert reason == "Licenses"


def test_a_planned_start_waits_for_both_nodes_and_licences(easy: Queue) -> None:
    put(easy, "matlab", 1)
    easy.sql.execute("update odc.policy set plan_depth = 10 where name = 'fifo'")
    holder = easy.submit(BOB, gpus=1, licences={"matlab": 1}, time_limit_s=HOUR)
    nodes = [easy.submit(BOB, gpus=gpus, gpu_type="h100", time_limit_s=3 * HOUR) for gpus in (7, 8)]
    assert easy.start() == [holder, *nodes]
    first = easy.submit(gpus=8, licences={"matlab": 1}, time_limit_s=2 * HOUR)
    second = easy.submit(gpus=1, licences={"matlab": 1}, time_limit_s=2 * HOUR)
    third = easy.submit(gpus=1, licences={"matlab": 1}, time_limit_s=3 * HOUR)
    assert easy.start() == []
    assert planned(easy) == {first: 3 * HOUR, second: HOUR, third: 5 * HOUR}


def test_an_array_over_its_users_limit_is_planned_as_a_whole(easy: Queue) -> None:
    a_limit(easy.sql, "qos", 1, "user", "jobs", 2)
    array = easy.submit(array="0-9", gpus=1, time_limit_s=HOUR)
    assert len(easy.start()) == 2
    assert planned(easy) == {array: HOUR}


def test_an_edited_licence_makes_a_plan_with_reservations_stale(easy: Queue) -> None:
    """A pass checks the version of the facts before it writes, and decides again."""
    put(easy, "matlab", 1)
    version = easy.sql.value("select version from odc.facts")
    put(easy, "matlab", 0)
    assert easy.sql.value("select version from odc.facts") > version
    assert easy.sql.value("select odc._plan_moved($1, null, null, null, null, null)", version)


def test_a_replay_reads_the_same_ends_of_limits(queue: Queue) -> None:
    """What a plan reads of running jobs for their limits is part of its digest."""
    put(queue, "matlab", 1)
    holder = queue.submit(licences={"matlab": 1}, time_limit_s=HOUR)
    assert queue.start() == [holder]
    queue.submit(licences={"matlab": 1}, time_limit_s=HOUR)
    query = "select read_digest from odc.decide($1, p_digest => true)"
    before = queue.sql.value(query, queue.now)
    assert queue.sql.value(query, queue.now) == before
    ends = queue.now + timedelta(hours=2)
    queue.sql.execute("update odc.running set ends_at = $1 where job_id = $2", ends, holder)
    assert queue.sql.value(query, queue.now) != before


def test_at_most_sixteen_jobs_are_planned_for_limits_in_one_pass(easy: Queue) -> None:
    a_limit(easy.sql, "qos", 1, "user", "jobs", 1)
    easy.sql.execute("update odc.policy set plan_depth = 1000 where name = 'fifo'")
    running = [
        easy.submit(a_user(n % 8), gpus=1, gpu_type="h100", time_limit_s=HOUR) for n in range(8)
    ]
    assert easy.start() == running
    waits = [easy.submit(a_user(n % 8), gpus=1, time_limit_s=HOUR) for n in range(24)]
    assert easy.start() == []
    assert sorted(planned(easy)) == waits[:16]
