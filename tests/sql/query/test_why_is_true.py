"""What `why` names is in the way: with it gone, and nothing else, the job starts."""

from __future__ import annotations

import json
import random

import pytest

from tests.support.builders import Queue, a_cluster

LIMITS_S = [600, 1800, 3600, 7200, 86400]


def a_day(queue: Queue, chance: random.Random) -> list[int]:
    """A cluster, some jobs that run and some that wait; the ids of those that wait."""
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


@pytest.mark.parametrize("seed", range(12))
def test_a_job_starts_when_what_why_names_is_gone(queue: Queue, seed: int) -> None:
    chance = random.Random(f"why/{seed}")
    for job_id in a_day(queue, chance):
        told = json.loads(queue.sql.value("select odc.explain_job($1, $2)", job_id, queue.now))
        named = {cause["job_id"] for cause in told["why"] if "job_id" in cause}
        assert named, told
        if any("and more" in cause["text"] for cause in told["why"]):
            continue
        with queue.sql.trial():
            queue.cancel(*sorted(named))
            queue.end(*sorted(named))
            assert job_id in queue.start(), json.dumps(told)
