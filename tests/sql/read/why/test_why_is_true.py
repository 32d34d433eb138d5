"""The obstacles that `why` names are real: without them, and with nothing else changed, the job
starts."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable
from typing import Any

import pytest

from tests.sql.scheduler.plan.world import UNLIMITED_S
from tests.support.builders.jobs import Queue, a_cluster

OPERATOR = json.dumps({"user": "root", "uid": 0, "operator": True})
LIMITS_S = [600, 1800, 3600, 7200, 86400]


def a_day(queue: Queue, chance: random.Random) -> list[int]:
    """A cluster with running and pending jobs; returns the ids of the pending jobs."""
    a_cluster(queue.sql, h100=chance.randint(1, 3), l4=chance.randint(0, 2))
    queue.sql.execute(
        "update odc.partition set policy = $1", chance.choice(["fifo", "wfp3", "saf", "odc"])
    )
    for _ in range(chance.randint(6, 14)):
        types = [None, "h100"] + (["l4"] if queue.sql.value(
            "select count(*) from odc.node where gpu_type = 'l4'") else [])  # fmt: skip
        gpu_type = chance.choice(types)
        most = 4 if gpu_type == "l4" else 8
        queue.submit(
            gpu_type=gpu_type,
            gpus_per_node=chance.choice([1, 2, 4, most]),
            node_count=1 if chance.random() < 0.85 or gpu_type != "h100" else chance.randint(
                1, queue.sql.value("select count(*) from odc.node where gpu_type = 'h100'")),
            time_limit_s=chance.choice(LIMITS_S),
        )  # fmt: skip
        queue.move(chance.choice([1, 60, 600]))
        if chance.random() < 0.7:
            queue.start()
    queue.start()
    return queue.sql.values("select job_id from odc.pending where ready order by job_id")


def causes_of(queue: Queue, job_id: int) -> list[dict[str, Any]]:
    return json.loads(queue.sql.value("select odc.explain_job($1, $2)", job_id, queue.now))["why"]


def named_by(why: list[dict[str, Any]]) -> list[int]:
    return sorted({cause["job_id"] for cause in why if "job_id" in cause})


def more_of(why: list[dict[str, Any]]) -> str:
    """How many more jobs are ahead of it, according to the answer."""
    texts = [cause["text"] for cause in why if " more job" in cause["text"]]
    return texts[0].split(" more job")[0] if texts else "0"


def looks(queue: Queue, job_id: int) -> int:
    """How often decide is called."""
    calls = (
        "select coalesce(sum(calls), 0) from pg_stat_xact_user_functions where funcname = 'decide'"
    )
    queue.sql.execute("set local track_functions = 'pl'")
    before = queue.sql.value(calls)
    causes_of(queue, job_id)
    return queue.sql.value(calls) - before


def starts_without(queue: Queue, job_id: int, gone: Iterable[int]) -> bool:
    with queue.sql.trial():
        queue.cancel(*gone)
        queue.end(*gone)
        return job_id in queue.start()


@pytest.mark.parametrize("seed", range(12))
def test_a_job_starts_without_the_obstacles_that_why_names(queue: Queue, seed: int) -> None:
    chance = random.Random(f"why/{seed}")
    for job_id in a_day(queue, chance):
        why = causes_of(queue, job_id)
        assert named_by(why), why
        assert more_of(why) == "0"
        assert starts_without(queue, job_id, named_by(why)), json.dumps(why)


def a_queue(queue: Queue, jobs: int, **fields: Any) -> tuple[int, list[int]]:
    """One node: a job that runs there, and others that want all of it; their ids."""
    a_cluster(queue.sql, h100=1)
    ids: list[int] = []
    for _ in range(jobs + 1):
        ids.append(queue.submit(gpus=8, gpu_type="h100", time_limit_s=3600, **fields))
        queue.move(1)
    assert queue.start() == ids[:1]
    return ids[0], ids[1:]


@pytest.mark.parametrize("policy", ["fifo", "wfp3", "odc"])
def test_every_job_of_a_short_queue_is_named(queue: Queue, policy: str) -> None:
    queue.sql.execute("update odc.partition set policy = $1", policy)
    runs, waiting = a_queue(queue, 7)
    why = causes_of(queue, waiting[-1])
    assert named_by(why) == [runs, *waiting[:-1]]
    assert more_of(why) == "0"
    assert [cause["cause"] for cause in why] == ["node", "running_job"] + ["planned_job"] * 6
    assert starts_without(queue, waiting[-1], named_by(why))
    assert not starts_without(queue, waiting[-1], named_by(why)[1:])


@pytest.mark.parametrize("policy", ["fifo", "odc"])
def test_the_first_jobs_of_a_long_queue_are_named_and_the_others_counted(
    queue: Queue, policy: str
) -> None:
    queue.sql.execute("update odc.partition set policy = $1", policy)
    runs, waiting = a_queue(queue, 80)
    # Other jobs: of another type, and behind it.
    a_cluster(queue.sql, h100=1, l4=1)
    queue.submit(gpus=4, gpu_type="l4")
    queue.submit(gpus=8, gpu_type="h100", time_limit_s=3600)
    queue.submit(gpus=4, gpu_type="l4")
    queue.start()
    for place in (70, 79):
        why = causes_of(queue, waiting[place])
        named = named_by(why)
        assert named[0] == runs
        assert set(named[1:]) < set(waiting[:place])
        assert int(more_of(why)) == place - len(named[1:])
        assert not starts_without(queue, waiting[place], [runs, *waiting[: place - 1]])
        assert starts_without(queue, waiting[place], [runs, *waiting[:place]])
        assert looks(queue, waiting[place]) <= 3


def test_a_very_long_queue_is_not_counted_to_its_end(queue: Queue) -> None:
    _, waiting = a_queue(queue, 1)
    for user in range(6):
        queue.sql.execute(
            "insert into odc.pending (job_id, shape_id, uid, account_id, qos_id, nice, queued_at, "
            "time_limit_s) select nextval('odc.job_id_seq'), shape_id, 2000 + $2, account_id, "
            "qos_id, nice, queued_at - interval '1 day', time_limit_s from odc.pending, "
            "generate_series(1, 100) where job_id = $1",
            waiting[0], user,
        )  # fmt: skip
    assert more_of(causes_of(queue, waiting[0])) == "more than 100"
    assert looks(queue, waiting[0]) <= 3


def test_a_job_ahead_of_the_queue_names_only_running_jobs(queue: Queue) -> None:
    """Gangs ahead of it wait for the other node; it needs only one."""
    queue.sql.execute("update odc.partition set policy = 'fifo'")
    a_cluster(queue.sql, h100=2)
    long = queue.submit(gpus=8, gpu_type="h100", time_limit_s=86400)
    short = queue.submit(gpus=8, gpu_type="h100", time_limit_s=7200)
    queue.start()
    for _ in range(3):
        queue.submit(gpus_per_node=8, gpu_type="h100", node_count=2)
    job = queue.submit(gpus=8, gpu_type="h100", time_limit_s=600)
    queue.start()
    why = causes_of(queue, job)
    assert (named_by(why), more_of(why)) == ([short], "0")
    assert starts_without(queue, job, [short])
    assert long not in named_by(why)


def test_jobs_of_another_partition_are_named_where_they_want_the_same_nodes(queue: Queue) -> None:
    runs, [first] = a_queue(queue, 1)
    queue.sql.value(
        "select odc.create_partition($1::jsonb, 'low', $2, $3)",
        OPERATOR, json.dumps({"all_nodes": True, "tier": 1}), queue.now,
    )  # fmt: skip
    job = queue.submit(partitions=["low"], gpus=8, gpu_type="h100")
    queue.start()
    why = causes_of(queue, job)
    assert (named_by(why), more_of(why)) == ([runs, first], "0")
    assert starts_without(queue, job, [runs, first])


def test_a_job_whose_nodes_are_down_needs_one_plan(queue: Queue) -> None:
    runs, [job, behind] = a_queue(queue, 2)
    queue.end(runs)
    queue.sql.execute(
        "select odc.set_node_state($1::jsonb, '{h100-1}', 'DRAIN', 'new driver', $2)",
        OPERATOR, queue.now,
    )  # fmt: skip
    queue.start()
    for job_id in (job, behind):
        assert {cause["cause"] for cause in causes_of(queue, job_id)} == {"node"}
        assert looks(queue, job_id) == 1


@pytest.mark.parametrize("joins", ["nestloop", "hashjoin", "mergejoin"])
def test_causes_have_one_order_under_any_query_plan(queue: Queue, joins: str) -> None:
    """Found: a protected job ahead of it was found twice at one time."""
    queue.sql.execute("update odc.policy set plan_depth = 1 where name = 'fifo'")
    queue.sql.execute("update odc.partition set policy = 'fifo'")
    a_cluster(queue.sql, h100=1)
    first, third, second, job = (
        queue.submit(gpus=gpus, gpu_type="h100", time_limit_s=3600, nice=nice)
        for gpus, nice in ((5, 0), (4, 100), (4, 50), (8, 200))
    )
    for other in {"nestloop", "hashjoin", "mergejoin"} - {joins}:
        queue.sql.execute(f"set local enable_{other} = off")
    queue.sql.execute("discard plans")
    # The second is named with the first; once both are gone the third would start.
    assert [cause["job_id"] for cause in causes_of(queue, job)] == [first, second, third]


@pytest.mark.parametrize("node_count", [1, 2])
def test_jobs_without_a_time_limit_are_named_though_no_start_is_in_sight(
    queue: Queue, node_count: int
) -> None:
    queue.sql.execute("update odc.partition set max_time_limit_s = null")
    running: list[int] = []
    for time_limit_s in (UNLIMITED_S, 3600, 7200, UNLIMITED_S):
        queue.submit(gpus=4, gpu_type="h100", time_limit_s=time_limit_s)
        running += queue.start()
    first = queue.submit(gpus_per_node=8, gpu_type="h100", node_count=node_count)
    job = queue.submit(gpus_per_node=8, gpu_type="h100", node_count=node_count)
    queue.start()
    why = causes_of(queue, first)
    assert named_by(why) == (running if node_count == 2 else running[:2])
    assert any("with no time limit" in cause["text"] for cause in why)
    assert starts_without(queue, first, named_by(why))
    assert starts_without(queue, job, named_by(causes_of(queue, job)))
