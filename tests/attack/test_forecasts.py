"""No job keeps the expected starts of all others from being computed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.builders.jobs import BOB, Queue, a_cluster
from tests.support.harness.database import Sql

LONGEST_S = 2_147_483_646
"""68 years, the longest time limit but UNLIMITED."""


@pytest.fixture
def queue(database_url: str) -> Iterator[Queue]:
    with Sql(database_url) as sql:
        sql.begin()
        a_cluster(sql, h100=1, l4=1)
        sql.execute("update odc.partition set max_time_limit_s = null")
        yield Queue(sql)
        sql.rollback()


def test_jobs_with_the_longest_time_limits_stop_no_forecast(queue: Queue) -> None:
    """Before: with a few of them on one node, "integer out of range" ended every refresh: no job of
    any user got an expected start any more. Their predicted run time is 68 years if the user's
    other jobs ran for their whole limit, and the partition must have no limit."""
    for _ in range(3):
        job = queue.submit(gpus_per_node=8, gpu_type="h100", time_limit_s=60)
        queue.start()
        queue.move(60)
        queue.end(job)
    for _ in range(5):
        queue.submit(gpus_per_node=8, gpu_type="h100", time_limit_s=LONGEST_S)
    queue.submit(BOB, gpus_per_node=4, gpu_type="l4", time_limit_s=600)
    queue.start()
    waiting = queue.submit(BOB, gpus_per_node=4, gpu_type="l4", time_limit_s=600)
    queue.start()
    assert queue.sql.value("select foreseen from odc.refresh_eta(0, $1)", queue.now) >= 2
    p50 = queue.sql.value("select p50 from odc.eta where job_id = $1", waiting)
    assert p50 > queue.now
