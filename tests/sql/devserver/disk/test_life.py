"""The life of a disk: one holder, saved at every end, restored from the last snapshot."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import asyncpg
import pytest

from odcd.errors import DiskDeleted, UnknownDisk, WrongState, refusal
from odcd.records.job import ReservationSpec
from tests.support.builders.dev_servers import HOUR, Reservations
from tests.support.builders.disks import Disks
from tests.support.builders.jobs import ALICE, BOB, ROOT, Queue, a_cluster, submit

NODE = {"gpu_type": "h100", "gpus": 8, "cpus": 64, "mem_mib": 64_000, "declared": True}
EAST, WEST = (
    {**NODE, "name": "east", "zone": "east-1a"},
    {**NODE, "name": "west", "zone": "east-1b"},
)


@pytest.fixture
def reservations(queue: Queue) -> Reservations:
    return Reservations(queue)


@pytest.fixture
def disks(queue: Queue) -> Disks:
    a_cluster(queue.sql, more=[EAST, WEST])
    return Disks(queue)


def reserve(reservations: Reservations, disk: str = "main", **more: Any) -> int:
    return reservations.reserve(details={"disk": disk}, gpu_type="h100", **more)


def test_a_disk_is_created_saved_and_restored(
    reservations: Reservations, disks: Disks, queue: Queue
) -> None:
    """STO-01, STO-04, STO-05, SCH-08: the next reservation has the data, in its node's zone."""
    disks.create()
    first = reserve(reservations, node_list=["east"])
    queue.start()
    assert disks.volume(first)["zone"] == "east-1a"
    assert disks.settle(3) == ["volume create", "volume look", "volume publish"]
    reservations.facts(first, "started", 0)
    disks.write(first, "hello")
    disk = disks.show()
    assert (disk["state"], disk["reservation_id"]) == ("in-use", first)
    queue.cancel(first)
    reservations.facts(first, "exited", 0, exit_code=0)
    assert disks.settle(3)[:3] == ["volume withdraw", "volume look", "snapshot create"]
    assert disks.show()["state"] == "backing-up"
    disks.complete()
    disk = disks.show()
    assert (disk["state"], disk["snapshot_count"], disk["volume_id"]) == ("available", 1, None)
    assert disks.cloud.volumes == {}
    [kind] = queue.sql.values("select kind from odc.disk_snapshot")
    assert kind == "cancellation"

    second = reserve(reservations, node_list=["west"])
    queue.start()
    disks.settle(3)
    assert disks.volume(second)["zone"] == "east-1b"
    assert disks.read(second) == ["hello"]
    history = [one["text"] for one in reservations.show(second)["history"]]
    [saved] = disks.cloud.snapshots
    volume = disks.volume(second)["cloud_id"]
    assert f'its disk "main" is ready: volume {volume} in east-1b, from snapshot {saved}' in history


def test_a_disk_in_use_is_waited_for(
    reservations: Reservations, disks: Disks, queue: Queue
) -> None:
    """STO-03, STO-20, SCH-22: the holder is named, and the expected end of the wait is shown."""
    disks.create()
    holder = reserve(reservations, hours=1)
    queue.start()
    disks.settle(3)
    reservations.facts(holder, "started", 0)
    second = reserve(reservations)
    third = reserve(reservations)
    assert queue.start() == []
    shown = reservations.show(second)
    assert (shown["status"], shown["reason"]) == ("queued", "DiskBusy")
    why = disks.why(second)
    assert (why["cause"], why["job_id"]) == ("disk", holder)
    assert why["text"] == f'disk "main" is in use by reservation {holder}'
    ends_at = reservations.row(holder)["expires_at"] + timedelta(seconds=120)
    assert queue.pending(second)["lacks_until"] == ends_at + timedelta(minutes=5)
    queue.sql.rows("select * from odc.refresh_eta(0, $1)", queue.now)
    eta = reservations.show(second)["eta"]
    assert eta["p10"] < eta["p50"] < eta["p90"]
    assert eta["p50"] == (ends_at + timedelta(minutes=5)).strftime("%Y-%m-%dT%H:%M:%SZ")

    queue.cancel(holder)
    reservations.facts(holder, "exited", 0, exit_code=0)
    assert queue.start() == []
    assert "is being saved" in disks.why(second)["text"]
    disks.settle(3)
    assert queue.start() == []
    assert reservations.show(second)["reason"] == "SnapshotPending"
    [saved] = disks.cloud.snapshots
    text = disks.why(second)["text"]
    assert text.startswith(f'the snapshot {saved} of disk "main" is being created')
    disks.complete()
    assert queue.start() == [second]
    assert reservations.show(third)["reason"] == "DiskBusy"


def test_the_first_in_the_queue_gets_the_disk_unless_it_is_held(
    reservations: Reservations, disks: Disks, queue: Queue
) -> None:
    disks.create()
    first = reserve(reservations)
    second = reserve(reservations)
    assert disks.why(second)["text"] == 'another reservation gets disk "main" first'
    queue.hold(first)
    assert queue.start() == [second]


def test_cancelling_the_first_gives_the_disk_to_the_next(
    reservations: Reservations, disks: Disks, queue: Queue
) -> None:
    """LIF-24."""
    disks.create()
    first, second = reserve(reservations), reserve(reservations)
    queue.cancel(first)
    assert queue.start() == [second]


def test_a_disk_has_at_most_one_volume(
    reservations: Reservations, disks: Disks, queue: Queue
) -> None:
    """STO-26, BUG-13, DAT-05: by a constraint; an empty second volume would become the newest
    snapshot."""
    disks.create()
    dev_server = reserve(reservations)
    queue.start()
    with pytest.raises(asyncpg.UniqueViolationError):
        queue.sql.execute(
            "insert into odc.disk_volume (disk_id, job_id, attempt, fence, size_gib, state_at, "
            "made_at) select disk_id, 99, 1, 2, 100, now(), now() from odc.disk_volume"
        )
    with pytest.raises(asyncpg.UniqueViolationError):
        queue.sql.execute(
            "insert into odc.disk (uid, user_name, name, size_gib, made_at, holder) "
            "values (1, 'x', 'y', 10, now(), $1)",
            dev_server,
        )


def test_a_dev_server_that_never_ran_leaves_no_snapshot(
    reservations: Reservations, disks: Disks, queue: Queue
) -> None:
    """LIF-24, STO-12: cancelled before the cloud has answered; no snapshot of an empty volume."""
    disks.create()
    dev_server = reserve(reservations)
    queue.start()
    queue.cancel(dev_server)
    reservations.facts(dev_server, "exited", 0, exit_code=0)
    assert disks.show()["reservation_id"] == dev_server, "an answer is awaited"
    assert disks.settle(3) == ["volume create", "volume delete"]
    assert disks.cloud.volumes == {}
    disk = disks.show()
    assert (disk["state"], disk["snapshot_count"]) == ("available", 0)


def test_data_of_a_dead_pod_is_saved_before_the_disk_is_used_again(
    reservations: Reservations, disks: Disks, queue: Queue
) -> None:
    """STO-22, LIF-12, STO-23: after every kind of end."""
    disks.create()
    dev_server = reserve(reservations)
    queue.start()
    disks.settle(3)
    reservations.facts(dev_server, "started", 0)
    disks.write(dev_server, "precious")
    reservations.facts(dev_server, "lost", 0, detail="its pod no longer exists")
    assert reservations.status(dev_server) == "failed"
    after = reserve(reservations)
    assert queue.start() == []
    disks.settle(5)
    disks.complete()
    assert queue.start() == [after]
    disks.settle(3)
    assert disks.read(after) == ["precious"]


def test_a_volume_is_finally_detached_by_force(
    reservations: Reservations, disks: Disks, queue: Queue
) -> None:
    """STO-21, STO-24, BUG-28: it is not saved while it is written to, and its user is notified."""
    disks.create()
    dev_server = reserve(reservations)
    queue.start()
    disks.settle(3)
    volume = disks.volume(dev_server)["cloud_id"]
    disks.cloud.attached.add(volume)
    reservations.facts(dev_server, "lost", 0)
    done = disks.settle(290)
    assert "snapshot create" not in done
    assert disks.show()["reservation_id"] == dev_server
    done = disks.settle(60)
    assert "volume detach" in done
    assert "snapshot create" in done


def test_no_second_snapshot_while_one_is_pending(
    reservations: Reservations, disks: Disks, queue: Queue
) -> None:
    """STO-10."""
    _saved(reservations, disks, queue)
    with pytest.raises(asyncpg.UniqueViolationError):
        queue.sql.execute(
            "insert into odc.disk_snapshot (disk_id, volume_id, kind, size_gib, asked_at) "
            "select disk_id, volume_id, kind, size_gib, now() from odc.disk_snapshot"
        )


def _saved(
    reservations: Reservations, disks: Disks, queue: Queue, word: str = "x", disk: str = "main"
) -> int:
    """A reservation that wrote on a disk and is over; its snapshot is pending."""
    if not queue.sql.value("select exists (select from odc.disk where name = $1)", disk):
        disks.create(disk)
    dev_server = reserve(reservations, disk)
    assert queue.start() == [dev_server]
    disks.settle(3)
    reservations.facts(dev_server, "started", 0)
    disks.write(dev_server, word)
    queue.cancel(dev_server)
    reservations.facts(dev_server, "exited", 0, exit_code=0)
    disks.settle(5)
    return dev_server


def test_a_failed_snapshot_is_retried_and_its_volume_kept(
    reservations: Reservations, disks: Disks, queue: Queue
) -> None:
    """STO-06, STO-08: an older one is never restored silently."""
    _saved(reservations, disks, queue, "old")
    disks.complete()
    _saved(reservations, disks, queue, "new")
    waits = reserve(reservations)
    for _ in range(3):
        queue.move(60)
        disks.work(lambda work: {"state": "error"} if work["verb"] == "look" else None)
        queue.move(60)
        disks.work()
    disk = disks.show()
    assert disk["state"] == "trouble"
    assert "failed 3 times" in disk["trouble"]
    assert queue.start() == []
    assert len(disks.cloud.volumes) == 1
    disks.complete()
    assert disks.show()["trouble"] is None
    assert queue.start() == [waits]
    disks.settle(3)
    assert disks.read(waits) == ["old", "new"]


def test_a_vanished_volume_is_reported(
    reservations: Reservations, disks: Disks, queue: Queue
) -> None:
    """STO-06, STO-11, CLI-41: the next reservation reports it; only an operator can return to an
    older state."""
    _saved(reservations, disks, queue, "old")
    disks.complete()
    dev_server = reserve(reservations)
    queue.start()
    disks.settle(3)
    reservations.facts(dev_server, "started", 0)
    disks.cloud.volumes.clear()
    reservations.facts(dev_server, "lost", 0)
    disks.settle(5)
    disk = disks.show()
    assert (disk["state"], disk["reservation_id"]) == ("trouble", None)
    assert f"gone, and with it the data that reservation {dev_server} wrote" in disk["trouble"]
    error = refused(reservations, "main")
    assert isinstance(error, WrongState)
    with pytest.raises(Exception, match="may not unlock disks"):
        disks.act("unlock_disk", None, "main")
    assert disks.act("unlock_disk", "alice", "main", who=ROOT)["state"] == "available"
    after = reserve(reservations)
    queue.start()
    disks.settle(3)
    assert disks.read(after) == ["old"]


def refused(reservations: Reservations, disk: str) -> Exception:
    spec = ReservationSpec(
        script="#!/bin/sh\n", work_dir="/tmp", time_limit_s=HOUR, node_count=1, gpus_per_node=1,
        pty=True, details={"disk": disk}, name="dev",
    )  # fmt: skip
    [answer] = submit(reservations.sql, spec, now=reservations.queue.now)
    assert answer.code is not None
    return refusal(answer.code, answer.message or "", answer.hint)


def test_a_volume_that_cannot_be_created_fails_with_the_clouds_error(
    reservations: Reservations, disks: Disks, queue: Queue
) -> None:
    """STO-11, BUG-09: three attempts, and never a temporary home instead of the named disk."""
    disks.create()
    dev_server = reserve(reservations)
    for attempt in (1, 2, 3):
        queue.move(600)
        queue.sweep()
        assert queue.start() == [dev_server], attempt
        disks.work(lambda _: {"refused": "VolumeLimitExceeded: ask for more"})
        assert queue.running(dev_server)["intent"] == "member_failed"
        reservations.facts(dev_server, "exited", 0, exit_code=0)
    shown = reservations.show(dev_server)
    assert shown["status"] == "failed"
    assert 'disk "main" cannot be prepared: VolumeLimitExceeded' in shown["failure_reason"]
    assert disks.show()["state"] == "available"
    assert disks.settle(5) == []


def test_cloud_errors_are_retried_and_reported(
    reservations: Reservations, disks: Disks, queue: Queue
) -> None:
    """STO-19."""
    disks.create()
    dev_server = reserve(reservations)
    queue.start()
    for _ in range(3):
        disks.work(lambda _: {"busy": "RequestLimitExceeded"})
        queue.move(10)
    shown = reservations.show(dev_server)
    assert (shown["status"], shown["phase"]) == ("preparing", "disk")
    assert shown["message"].endswith('disk "main" is being created: RequestLimitExceeded')
    assert disks.show()["trouble"] == "RequestLimitExceeded"
    disks.settle(5)
    assert disks.show()["trouble"] is None
    assert [p["phase"] for p in reservations.show(dev_server)["phases"]] == [
        "queued",
        "starting",
        "disk",
    ]


def test_late_and_repeated_answers_change_nothing(
    reservations: Reservations, disks: Disks, queue: Queue
) -> None:
    """BUG-01, BUG-23."""
    disks.create()
    dev_server = reserve(reservations)
    queue.start()
    [create] = disks.due()
    answer = disks.cloud.do(create)
    disks.note(create, answer)
    disks.note(create, answer)
    disks.settle(3)
    disks.note(create, answer)
    disks.note({**create, "verb": "look"}, {"state": "missing"})
    assert disks.volume(dev_server)["state"] == "published"
    reservations.facts(dev_server, "lost", 0)
    disks.settle(3)
    disks.complete()
    before = queue.sql.rows("select * from odc.disk_volume, odc.disk_snapshot, odc.disk")
    for verb in ("create", "look", "publish", "withdraw", "detach", "delete"):
        disks.note({**create, "verb": verb}, {"state": "available", "done": True})
        disks.note({**create, "verb": verb}, {"busy": "late"})
        disks.note({**create, "verb": verb, "kind": "snapshot"}, {"state": "completed"})
        disks.note({**create, "verb": verb, "kind": "snapshot"}, {"busy": "late"})
    after = queue.sql.rows("select * from odc.disk_volume, odc.disk_snapshot, odc.disk")
    assert after == before


def test_only_existing_disks_can_be_requested(reservations: Reservations, disks: Disks) -> None:
    """STO-11: not an unknown name, another user's disk, or a deleted one."""
    disks.create("bobs", who=BOB)
    assert isinstance(refused(reservations, "nothing"), UnknownDisk)
    assert isinstance(refused(reservations, "bobs"), UnknownDisk)
    disks.create("gone")
    disks.act("delete_disk", None, "gone")
    assert isinstance(refused(reservations, "gone"), DiskDeleted)
    assert reservations.list(ALICE) == {}


def test_a_requeued_reservation_gets_its_disk_again(
    reservations: Reservations, disks: Disks, queue: Queue
) -> None:
    """LIF-25, STO-12: a volume of the first attempt is saved before the second attempt."""
    disks.create()
    dev_server = reserve(reservations)
    queue.start()
    disks.settle(3)
    disks.write(dev_server, "shell files")
    reservations.facts(dev_server, "start_failed", 0, cause="launch", detail="no such image yet")
    assert queue.pending(dev_server)["lacks"] == "disk"
    disks.settle(5)
    assert queue.pending(dev_server)["lacks"] == "snapshot"
    disks.complete()
    queue.move(600)
    queue.sweep()
    assert queue.start() == [dev_server]
    disks.settle(3)
    assert disks.read(dev_server) == ["shell files"]
    assert disks.volume(dev_server)["attempt"] == 2


def test_contents_are_kept_with_the_snapshot(
    reservations: Reservations, disks: Disks, queue: Queue
) -> None:
    """STO-17, STO-18, CLI-39: shown without a reservation; a disk may have none."""
    _saved(reservations, disks, queue)
    disks.complete()
    contents = disks.act("show_contents", None, "main")
    assert (contents["snapshot_id"], contents["contents"]) == (*disks.cloud.snapshots, None)
    dev_server = reserve(reservations)
    queue.start()
    disks.settle(3)
    reservations.facts(dev_server, "started", 0)
    queue.sql.execute(
        "select odc.note_contents(0, $1, 1, $2, $3)", dev_server, "4 KiB total\n", 4096
    )
    reservations.facts(dev_server, "lost", 0)
    disks.settle(5)
    assert disks.act("show_contents", None, "main")["contents"] is None, "not completed yet"
    disks.complete()
    assert disks.act("show_contents", None, "main")["contents"] == "4 KiB total\n"
    assert disks.show()["used_bytes"] == 4096


def test_a_disk_of_an_unknown_holder_is_released(
    reservations: Reservations, disks: Disks, queue: Queue
) -> None:
    """STO-21, BUG-08."""
    disks.create()
    queue.sql.execute("update odc.disk set holder = 1000000000")
    dev_server = reserve(reservations)
    assert queue.start() == []
    queue.sweep()
    assert queue.start() == [dev_server]


def test_the_expected_wait_for_a_disk_follows_every_change(
    reservations: Reservations, disks: Disks, queue: Queue
) -> None:
    """The planner wakes and with it the forecast: an early end of the holder moves the others."""
    disks.create()
    holder = reserve(reservations, hours=8)
    queue.start()
    disks.settle(3)
    reservations.facts(holder, "started", 0)
    reserve(reservations)
    judge = "select odc._judge_needs(null, $1)"
    assert not queue.sql.value(judge, queue.now)
    queue.cancel(holder)
    assert queue.sql.value(judge, queue.now)
    assert not queue.sql.value(judge, queue.now)
