"""The metrics of dev servers and their disks agree with the answers to their users."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sql.cluster.measure.figures import measured, of
from tests.support.builders.dev_servers import Reservations
from tests.support.builders.disks import Disks
from tests.support.builders.jobs import Queue, a_cluster

EAST = {
    "name": "east", "zone": "east-1a", "gpu_type": "h100", "gpus": 8, "cpus": 64,
    "mem_mib": 64_000, "declared": True,
}  # fmt: skip


@pytest.fixture
def reservations(queue: Queue) -> Reservations:
    return Reservations(queue)


@pytest.fixture
def disks(queue: Queue) -> Disks:
    a_cluster(queue.sql, more=[EAST])
    return Disks(queue)


def count(queue: Queue) -> None:
    """As odc.fold_tally does; uncommitted events of a test never become final."""
    queue.sql.execute("select odc._tally_events(array(select id from odc.event))")


def progress(queue: Queue, dev_server: int, phase: str) -> None:
    queue.sql.rows(
        "select odc.record_progress(0, array[$1::bigint], '{1}', '{0}', array[$2], "
        "array[$3::timestamptz], '{null}', $3)",
        dev_server, phase, queue.now,
    )  # fmt: skip


def phase(queue: Queue) -> dict[object, float]:
    found = measured(queue, "measure_reservations")
    oldest = of(found, "odcd_reservation_phase_oldest_seconds")
    return {name: oldest.get(name, 0) for name in of(found, "odcd_reservation_phase")}


def statuses(queue: Queue) -> dict[object, float]:
    return of(measured(queue, "measure_reservations"), "odcd_reservations")


def test_a_dev_server_is_counted_in_each_of_its_phases(
    reservations: Reservations, queue: Queue
) -> None:
    dev_server = reservations.reserve(hours=1)
    queue.move(5)
    assert (statuses(queue), phase(queue)) == ({"pending": 1}, {"queued": 5})
    queue.start()
    queue.move(2)
    assert (statuses(queue), phase(queue)) == ({"preparing": 1}, {"starting": 2})
    progress(queue, dev_server, "image_pull")
    queue.move(40)
    assert phase(queue) == {"image_pull": 40}
    assert reservations.show(dev_server)["phase"] == "image_pull"
    reservations.facts(dev_server, "started", 0)
    queue.move(100)
    assert (statuses(queue), phase(queue)) == ({"active": 1}, {"active": 100})
    queue.cancel(dev_server)
    queue.move(3)
    assert (statuses(queue), phase(queue)) == ({"cancelled": 1}, {"cleaning_up": 3})
    reservations.facts(dev_server, "exited", 0, exit_code=0)
    assert (statuses(queue), phase(queue)) == ({}, {})


def test_a_reservation_waiting_for_a_disk_is_not_stuck_with_gpus(
    reservations: Reservations, disks: Disks, queue: Queue
) -> None:
    """Another dev server may use the disk for days."""
    disks.create()
    first = reservations.reserve(details={"disk": "main"}, gpu_type="h100", node_list=["east"])
    queue.start()
    disks.settle(3)
    reservations.facts(first, "started", 0)
    second = reservations.reserve(details={"disk": "main"}, gpu_type="h100", node_list=["east"])
    assert queue.pending(second)["lacks"] == "disk"
    queue.move(3600)
    assert reservations.show(second)["phase"] is None
    assert set(phase(queue)) == {"active", "queued"}


def test_phases_are_counted_by_their_duration(reservations: Reservations, queue: Queue) -> None:
    dev_server = reservations.reserve(hours=1)
    queue.move(5)
    queue.start()
    queue.move(2)
    progress(queue, dev_server, "image_pull")
    queue.move(40)
    progress(queue, dev_server, "ssh")
    queue.move(4)
    reservations.facts(dev_server, "started", 0)
    queue.move(100)
    queue.cancel(dev_server)
    reservations.facts(dev_server, "exited", 0, exit_code=0)
    count(queue)
    found = measured(queue, "measure_tally")
    took: dict[str, Any] = {
        "queued": 5, "starting": 2, "image_pull": 40, "ssh": 4, "active": 100,
    }  # fmt: skip
    assert of(found, "odcd_reservation_phase_seconds_sum") == took
    assert set(of(found, "odcd_reservation_phase_seconds_count").values()) == {1}
    bucket = of(found, "odcd_reservation_phase_seconds_bucket")
    assert ("image_pull", "30") not in bucket
    assert bucket["image_pull", "60"] == 1
    took_s = {one["phase"]: one["took_s"] for one in reservations.show(dev_server)["phases"]}
    assert {name: took_s[name] for name in took} == took


def state(queue: Queue) -> dict[object, float]:
    return of(measured(queue, "measure_disks"), "odcd_disks")


def test_disks_are_counted_by_the_states_that_users_see(
    reservations: Reservations, disks: Disks, queue: Queue
) -> None:
    disks.create()
    assert state(queue) == {disks.show()["state"]: 1} == {"available": 1}
    dev_server = reservations.reserve(details={"disk": "main"}, gpu_type="h100", node_list=["east"])
    queue.start()
    disks.settle(3)
    reservations.facts(dev_server, "started", 0)
    assert state(queue) == {disks.show()["state"]: 1} == {"in-use": 1}
    queue.cancel(dev_server)
    reservations.facts(dev_server, "exited", 0, exit_code=0)
    queue.move(7)
    found = measured(queue, "measure_disks")
    assert found["odcd_disk_lock_stale_seconds",] >= 7, "held, and its dev server is over"
    disks.settle(3)
    assert state(queue) == {disks.show()["state"]: 1} == {"backing-up": 1}
    queue.move(60)
    found = measured(queue, "measure_disks")
    assert of(found, "odcd_snapshots") in ({"wanted": 1}, {"pending": 1})
    assert found["odcd_snapshot_pending_seconds",] >= 60
    assert found["odcd_disk_unsaved_seconds",] >= 60
    disks.complete()
    found = measured(queue, "measure_disks")
    assert of(found, "odcd_disks") == {disks.show()["state"]: 1} == {"available": 1}
    assert of(found, "odcd_snapshots") == {"completed": 1}
    for name in ("disk_lock_stale", "snapshot_pending", "disk_unsaved"):
        assert found[f"odcd_{name}_seconds",] == 0


def test_orphans_are_reported_and_counted(queue: Queue) -> None:
    sql = queue.sql
    sql.execute("select odc.note_orphans(0, '{odc-7-1-0,odc-8-1-0}', $1)", queue.now)
    stray = '[{"id": "vol-1", "operation": null, "tags": {}}]'
    for _ in range(2):
        sql.execute("select odc.reconcile_disks(0, $1::jsonb, '[]', $2, $2)", stray, queue.now)
        queue.move(10)
    count(queue)
    orphans = {"pod": 2, "volume": 1}
    assert of(measured(queue, "measure_disks"), "odcd_orphans") == orphans
    assert of(measured(queue, "measure_tally"), "odcd_orphans_found_total") == orphans
    queue.move(600)
    assert of(measured(queue, "measure_disks"), "odcd_orphans") == {"volume": 1}
