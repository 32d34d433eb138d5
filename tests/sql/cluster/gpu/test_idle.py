"""Allocated but idle GPUs: found by observations, listed with the jobs waiting for their type."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from tests.support.builders.dev_servers import Reservations
from tests.support.builders.gpus import GpuQueue, a_look
from tests.support.builders.jobs import BOB
from tests.support.harness.database import Sql


@pytest.fixture
def queue(sql: Sql) -> Iterator[GpuQueue]:
    queue = GpuQueue(sql)
    yield queue
    assert queue.contradictions() == []


def rest(queue: GpuQueue, job: int, minutes: int, *resting: str) -> None:
    for _ in range(minutes):
        queue.move(60)
        queue.look(a_look(job, util_ratio=0.01, resting=list(resting)))


def test_gpus_unused_for_long_are_idle(queue: GpuQueue) -> None:
    job = queue.run(gpus_per_node=8)
    began = queue.now
    rest(queue, job, 15, "GPU-a", "GPU-b")
    [one] = queue.idle()["jobs"]
    assert (one["id"], one["user"], one["gpus"], one["idle_gpus"]) == (job, "alice", 8, 2)
    assert (one["gpu_type"], one["kind"], one["node_names"]) == ("h100", "batch", ["gpu-1"])
    assert one["idle_since"] == f"{began:%Y-%m-%dT%H:%M:%SZ}"
    assert one["lost_gpu_s"] == 2 * 900
    use = queue.reported_use(job)["now"]
    assert (use["util_ratio"], use["mem_used_mib"], use["idle_gpus"]) == (0.01, 1000, 2)
    assert queue.measured()["odcd_gpus_held_idle"] == {"h100": 2}
    assert queue.measured()["odcd_jobs_held_idle"] == {"batch": 1, "reservation": 0}


def test_any_use_of_a_gpu_restarts_its_idle_time(queue: GpuQueue) -> None:
    job = queue.run()
    rest(queue, job, 14, "GPU-a", "GPU-b")
    assert queue.idle()["jobs"] == []
    rest(queue, job, 1, "GPU-b")
    rest(queue, job, 14, "GPU-a", "GPU-b")
    [one] = queue.idle()["jobs"]
    assert one["idle_gpus"] == 1
    rest(queue, job, 1, "GPU-a", "GPU-b")
    [one] = queue.idle()["jobs"]
    assert (one["idle_gpus"], one["lost_gpu_s"]) == (2, 900 + 1800)


def test_gpus_without_observations_count_as_used(queue: GpuQueue) -> None:
    job = queue.run()
    rest(queue, job, 20, "GPU-a")
    queue.move(179)
    assert len(queue.idle()["jobs"]) == 1
    queue.move(2)
    assert queue.idle()["jobs"] == []
    assert queue.reported_use(job) is None
    rest(queue, job, 1, "GPU-a")
    assert queue.idle()["jobs"] == []
    assert queue.reported_use(job)["now"]["idle_since"] is None


def test_observations_of_ended_attempts_are_ignored(queue: GpuQueue) -> None:
    job = queue.run(requeue=True)
    queue.look(a_look(job, 2), a_look(job + 1000))
    assert queue.reported_use(job) is None
    queue.look(a_look(job, None, util_ratio=0.25))
    assert queue.reported_use(job)["now"]["util_ratio"] == 0.25
    queue.lose(job)
    assert queue.sql.values("select job_id from odc.gpu_now") == []


def test_observations_show_on_which_node_a_gpu_is(queue: GpuQueue) -> None:
    gang = queue.run(gpus_per_node=8, node_count=2)
    seen = [
        {"rank": rank, "index": index, "uuid": f"card-{rank}{index}", "model": "NVIDIA H100"}
        for rank in (0, 1)
        for index in (0, 1)
    ]
    queue.look(a_look(gang, gpus=seen))
    queue.look(a_look(gang, gpus=[{**seen[0], "uuid": "card-new"}]))
    rows = queue.sql.rows(
        "select n.name, g.gpu_index, g.uuid from odc.gpu as g join odc.node as n "
        "on n.id = g.node_id order by 1, 2"
    )
    assert [tuple(row.values()) for row in rows] == [
        ("gpu-1", 0, "card-new"), ("gpu-1", 1, "card-01"), ("gpu-2", 0, "card-10"),
        ("gpu-2", 1, "card-11"),
    ]  # fmt: skip


def test_jobs_waiting_for_the_type_of_idle_gpus_are_listed(queue: GpuQueue) -> None:
    idle = [queue.run(gpus_per_node=8), queue.run(gpus_per_node=8)]
    queue.submit(BOB, gpus_per_node=4, node_count=2)
    queue.submit(BOB, gpus_per_node=1, gpu_type="h100", hold=True)
    queue.submit(gpus_per_node=1, gpu_type="h100")
    assert queue.start() == []
    waited = queue.now
    for job in idle:
        queue.look(a_look(job, resting=["GPU-a"]))
    for _ in range(15):
        queue.move(60)
        queue.look(*(a_look(job, resting=["GPU-a"]) for job in idle))
    idle_gpus = queue.idle()
    assert [one["id"] for one in idle_gpus["jobs"]] == idle
    assert idle_gpus["waiting"] == [
        {"gpu_type": "h100", "jobs": 2, "gpus": 9, "since": f"{waited:%Y-%m-%dT%H:%M:%SZ}",
         "users": ["alice", "bob"]},
    ]  # fmt: skip
    assert (idle_gpus["source"], idle_gpus["idle_ratio"], idle_gpus["idle_after_s"]) == (
        "prometheus",
        0.05,
        900,
    )


def test_the_list_is_filtered(queue: GpuQueue) -> None:
    job = queue.run()
    rest(queue, job, 16, "GPU-a")
    for filters in (
        {"user": ["alice"]}, {"account": ["default"]}, {"gpu_type": ["H100"]}, {"kind": "batch"},
    ):  # fmt: skip
        assert len(queue.idle(**filters)["jobs"]) == 1
    for filters in (
        {"user": ["bob"]}, {"account": ["x"]}, {"gpu_type": ["l4"]}, {"kind": "reservation"},
    ):  # fmt: skip
        assert queue.idle(**filters) | {"source": None} == {
            "source": None, "idle_ratio": 0.05, "idle_after_s": 900, "jobs": [], "waiting": [],
        }  # fmt: skip


def look_at_box(queue: GpuQueue, dev_server: int, gpu: int | None) -> None:
    queue.sql.rows(
        "select * from odc.note_look(0, $1, 1, 0, $2, 1.0, $3, $4)",
        dev_server, gpu, timedelta(minutes=5), queue.now,
    )  # fmt: skip


def alone_since(queue: GpuQueue, dev_server: int) -> object:
    return queue.sql.value("select idle_since from odc.box_look where job_id = $1", dev_server)


def test_a_dev_server_that_cannot_report_use_takes_it_from_observations(queue: GpuQueue) -> None:
    """Its pod has no nvidia-smi: unknown counted as use, and now the use is known."""
    dev_server = Reservations(queue).active(gpus=2)
    look_at_box(queue, dev_server, None)
    queue.move(300)
    look_at_box(queue, dev_server, None)
    assert alone_since(queue, dev_server) is None
    rest(queue, dev_server, 5, "GPU-a", "GPU-b")
    look_at_box(queue, dev_server, None)
    assert alone_since(queue, dev_server) == queue.now
    # One of the two is used.
    rest(queue, dev_server, 5, "GPU-a")
    look_at_box(queue, dev_server, None)
    assert alone_since(queue, dev_server) is None
    # The pod's own measurement is more precise.
    rest(queue, dev_server, 5, "GPU-a", "GPU-b")
    look_at_box(queue, dev_server, 40)
    assert alone_since(queue, dev_server) is None


def test_observations_of_dev_servers_show_idle_gpus_without_another_source(queue: GpuQueue) -> None:
    queue.meter(None)
    dev_server = Reservations(queue).active(gpus=2)
    for _ in range(6):
        look_at_box(queue, dev_server, 0)
        queue.move(300)
    [one] = queue.idle()["jobs"]
    assert (one["id"], one["kind"], one["idle_gpus"]) == (dev_server, "reservation", 2)
    assert one["alone_since"] == one["idle_since"]
    assert queue.measured()["odcd_reservation_idle_seconds"] == {"alice": 1500}


def test_missing_gpu_use_is_a_metric(queue: GpuQueue) -> None:
    assert queue.measured() == {
        "odcd_gpus_held_idle": {"h100": 0}, "odcd_gpu_use_pending": {"": 0},
        "odcd_gpu_use_pending_seconds": {"": 0},
        "odcd_jobs_held_idle": {"batch": 0, "reservation": 0},
    }  # fmt: skip
    job = queue.run()
    queue.move(60)
    queue.end(job)
    queue.move(900)
    queue.end(queue.run())
    measured = queue.measured()
    assert measured["odcd_gpu_use_pending"] == {"": 2}
    assert measured["odcd_gpu_use_pending_seconds"] == {"": 900}
