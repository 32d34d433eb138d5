"""The usage of attempts is charged once, when they end."""

from __future__ import annotations

from datetime import timedelta

from tests.support.builders.jobs import ALICE, BOB, Queue

WEEK_S = 604_800


def usage(queue: Queue) -> dict[int, tuple[int, int, int]]:
    return {
        row["uid"]: (row["used_ms"], row["used_gpu_ms"], row["total_gpu_ms"])
        for row in queue.sql.rows("select * from odc.usage")
    }


def test_a_job_is_charged_its_gpus_for_as_long_as_it_ran(queue: Queue) -> None:
    job = queue.submit(gpus=2, gpu_type="h100", time_limit_s=3600)
    queue.start()
    queue.move(100)
    assert usage(queue) == {ALICE.uid: (0, 0, 0)}
    queue.end(job)
    assert usage(queue) == {ALICE.uid: (200_000, 200_000, 200_000)}


def test_a_gang_an_array_and_another_user_in_one_transaction(queue: Queue) -> None:
    gang = queue.submit(node_count=2, gpus_per_node=4, gpu_type="h100")
    array = queue.submit(BOB, gpus=1, array="0-3")
    started = queue.start()
    assert len(started) == 5
    queue.move(10)
    queue.end(gang, *(queue.task(array, n) for n in range(4)))
    assert usage(queue) == {ALICE.uid: (80_000,) * 3, BOB.uid: (40_000,) * 3}


def test_cpus_are_billed_where_they_are_more_than_the_gpus(queue: Queue) -> None:
    """24 CPUs are billed as one GPU."""
    job = queue.submit(ntasks=48, time_limit_s=3600)
    queue.start()
    queue.move(1000)
    queue.end(job)
    assert usage(queue) == {ALICE.uid: (2_000_000, 0, 0)}


def test_a_qos_may_cost_more_or_less(queue: Queue) -> None:
    queue.sql.execute("update odc.qos set usage_factor = 0.25 where name = 'normal'")
    job = queue.submit(gpus=1, gpu_type="h100")
    queue.start()
    queue.move(1000)
    queue.end(job)
    assert usage(queue) == {ALICE.uid: (250_000, 250_000, 1_000_000)}


def test_every_attempt_of_a_job_is_charged(queue: Queue) -> None:
    job = queue.submit(gpus=8, gpu_type="h100")
    for _ in range(2):
        queue.start()
        queue.move(60)
        queue.requeue(job)
        queue.end(job, exit_code=1)
    assert usage(queue)[ALICE.uid][2] == 960_000


def test_new_usage_is_added_to_decayed_usage(queue: Queue) -> None:
    for _ in range(2):
        job = queue.submit(gpus=1, gpu_type="h100", time_limit_s=3600)
        queue.start()
        queue.move(1024)
        queue.end(job)
        queue.move(WEEK_S - 1024)
    # The first ended a week before the second.
    queue.now -= timedelta(seconds=WEEK_S - 1024)
    assert usage(queue) == {ALICE.uid: (1_024_000 // 2 + 1_024_000,) * 2 + (2_048_000,)}
