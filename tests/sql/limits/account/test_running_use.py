"""running_use, which passes read instead of running jobs, always equals what runs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.builders.jobs import BOB, Queue, a_cluster

# The definition of _running_use, from running jobs and their allocations.
BY_JOB = """
    select account_id, uid, qos_id, partition_id, count(*) as jobs, sum(nodes)::bigint as nodes,
           sum(gpus)::bigint as gpus, sum(cpus)::bigint as cpus,
           (sum((greatest(gpus * 1000, cpus * 1000 / o.cpus_per_gpu) * ms)::numeric) / 1000)::bigint
               as used_ms
      from (select r.account_id, r.uid, r.qos_id, r.partition_id, count(*) as nodes,
                   sum(a.gpus) as gpus, sum(a.cpus) as cpus,
                   (extract(epoch from $1 - max(r.started_at)) * 1000)::bigint as ms
              from odc.running as r join odc.allocation as a on a.job_id = r.job_id
             group by r.job_id) as j
     cross join odc.account_setting as o
     group by 1, 2, 3, 4
"""


@pytest.fixture
def queue(queue: Queue) -> Queue:
    a_cluster(queue.sql, h100=4, l4=2)
    return queue


def differences(queue: Queue) -> list[dict[str, Any]]:
    return queue.sql.rows(
        f"""
        with expected as ({BY_JOB}),
             found as (select account_id, uid, qos_id, partition_id, jobs, nodes, gpus, cpus,
                              used_ms
                         from odc._running_use($1))
        (table expected except table found) union all (table found except table expected)
        """,
        queue.now,
    )


def test_the_use_of_running_jobs_follows_every_start_and_end(queue: Queue) -> None:
    queue.submit(gpus=2)
    single = queue.submit(gpus=2)
    gang = queue.submit(BOB, node_count=2, gpus_per_node=8, gpu_type="h100")
    whole = queue.submit(gpus=1, gpu_type="l4", exclusive=True)
    queue.submit(ntasks=50)
    array = queue.submit(BOB, gpus=1, array="0-2")
    assert len(queue.start()) == 8
    assert differences(queue) == []

    queue.move(90)
    queue.end(single, queue.task(array, 1))
    assert differences(queue) == []

    queue.move(33.25)
    queue.requeue(gang, who=BOB)
    queue.end(gang)
    assert queue.start() == [gang]
    queue.end(whole, exit_code=1)
    queue.move(7)
    assert differences(queue) == []
    assert queue.contradictions() == []


def test_a_user_whose_jobs_ended_uses_nothing(queue: Queue) -> None:
    job = queue.submit(gpus=2)
    queue.start()
    queue.end(job)
    assert queue.sql.rows("select * from odc._running_use($1)", queue.now) == []
    assert queue.sql.value("select count(*) from odc.running_use") == 1
    queue.sweep()
    assert queue.sql.value("select count(*) from odc.running_use") == 0
    assert queue.sql.value("select count(*) from odc.event where kind = 'books_repaired'") == 0


@pytest.mark.parametrize(
    "damage",
    [
        "update odc.running_use set jobs = jobs + 1",
        "update odc.running_use set started_ms = started_ms + 5",
        "delete from odc.running_use",
        "insert into odc.running_use values (1, 7, 1, 1, 1, 1, 8, 8, 3, 0)",
    ],
)
def test_the_sweep_repairs_and_reports_a_wrong_count(queue: Queue, damage: str) -> None:
    queue.submit(gpus=2)
    queue.start()
    queue.sql.execute(damage)
    assert len(queue.contradictions()) == 1
    queue.sweep()
    assert queue.contradictions() == []
    assert differences(queue) == []
    detail = json.loads(
        queue.sql.value("select detail::text from odc.event where kind = 'books_repaired'")
    )
    assert (detail["book"], detail["count"]) == ("use", 1)


def test_licences_in_use_are_those_of_running_jobs(queue: Queue) -> None:
    queue.sql.execute("insert into odc.licence (name, total) values ('fluent', 5)")
    jobs = [queue.submit(gpus=1, licences={"fluent": 2}) for _ in range(3)]
    assert queue.start() == jobs[:2]
    used = "select used from odc._licence_use() where name = 'fluent'"
    assert queue.sql.value(used) == 4
    queue.end(jobs[0])
    assert queue.sql.value(used) == 2
    assert queue.start() == jobs[2:]
