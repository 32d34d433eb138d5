"""The life of a disk: taken by one, put away at every end, restored from what was written last."""

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
def boxes(queue: Queue) -> Reservations:
    return Reservations(queue)


@pytest.fixture
def disks(queue: Queue) -> Disks:
    a_cluster(queue.sql, more=[EAST, WEST])
    return Disks(queue)


def reserve(boxes: Reservations, disk: str = "main", **more: Any) -> int:
    return boxes.reserve(asked={"disk": disk}, gpu_type="h100", **more)


def test_a_disk_is_made_restored_and_put_away(
    boxes: Reservations, disks: Disks, queue: Queue
) -> None:
    """STO-01, STO-04, STO-05, SCH-08: what one wrote, the next reads, in the zone of its node."""
    disks.create()
    first = reserve(boxes, node_list=["east"])
    queue.start()
    assert disks.volume(first)["zone"] == "east-1a"
    assert disks.settle(3) == ["volume create", "volume look", "volume publish"]
    boxes.facts(first, "started", 0)
    disks.write(first, "hello")
    told = disks.show()
    assert (told["state"], told["reservation_id"]) == ("in-use", first)
    queue.cancel(first)
    boxes.facts(first, "exited", 0, exit_code=0)
    assert disks.settle(3)[:3] == ["volume withdraw", "volume look", "snapshot create"]
    assert disks.show()["state"] == "backing-up"
    disks.complete()
    told = disks.show()
    assert (told["state"], told["snapshot_count"], told["volume_id"]) == ("available", 1, None)
    assert disks.cloud.volumes == {}
    [kind] = queue.sql.values("select kind from odc.disk_snapshot")
    assert kind == "cancellation"

    second = reserve(boxes, node_list=["west"])
    queue.start()
    disks.settle(3)
    assert disks.volume(second)["zone"] == "east-1b"
    assert disks.read(second) == ["hello"]
    history = [one["text"] for one in boxes.show(second)["history"]]
    [saved] = disks.cloud.snapshots
    volume = disks.volume(second)["cloud_id"]
    assert f'its disk "main" is ready: volume {volume} in east-1b, from snapshot {saved}' in history


def test_a_disk_in_use_is_waited_for(boxes: Reservations, disks: Disks, queue: Queue) -> None:
    """STO-03, STO-20, SCH-22: the holder is named; it waits in the queue, an end in sight."""
    disks.create()
    holder = reserve(boxes, hours=1)
    queue.start()
    disks.settle(3)
    boxes.facts(holder, "started", 0)
    second = reserve(boxes)
    third = reserve(boxes)
    assert queue.start() == []
    told = boxes.show(second)
    assert (told["status"], told["reason"]) == ("queued", "DiskBusy")
    why = disks.why(second)
    assert (why["cause"], why["job_id"]) == ("disk", holder)
    assert why["text"] == f'disk "main" is in use by reservation {holder}'
    ends_at = boxes.row(holder)["expires_at"] + timedelta(seconds=120)
    assert queue.pending(second)["lacks_until"] == ends_at + timedelta(minutes=5)
    queue.sql.rows("select * from odc.refresh_eta(0, $1)", queue.now)
    eta = boxes.show(second)["eta"]
    assert eta["p10"] < eta["p50"] < eta["p90"]
    assert eta["p50"] == (ends_at + timedelta(minutes=5)).strftime("%Y-%m-%dT%H:%M:%SZ")

    queue.cancel(holder)
    boxes.facts(holder, "exited", 0, exit_code=0)
    assert queue.start() == []
    assert "is being saved" in disks.why(second)["text"]
    disks.settle(3)
    assert queue.start() == []
    assert boxes.show(second)["reason"] == "SnapshotPending"
    [saved] = disks.cloud.snapshots
    text = disks.why(second)["text"]
    assert text.startswith(f'the snapshot {saved} of disk "main" is being made')
    disks.complete()
    assert queue.start() == [second]
    assert boxes.show(third)["reason"] == "DiskBusy"


def test_the_first_in_the_queue_gets_it_unless_it_is_held(
    boxes: Reservations, disks: Disks, queue: Queue
) -> None:
    disks.create()
    first = reserve(boxes)
    second = reserve(boxes)
    assert disks.why(second)["text"] == 'another reservation gets disk "main" first'
    queue.hold(first)
    assert queue.start() == [second]


def test_cancelling_the_first_lets_the_next_have_it(
    boxes: Reservations, disks: Disks, queue: Queue
) -> None:
    """LIF-24."""
    disks.create()
    first, second = reserve(boxes), reserve(boxes)
    queue.cancel(first)
    assert queue.start() == [second]


def test_two_volumes_of_one_disk_there_cannot_be(
    boxes: Reservations, disks: Disks, queue: Queue
) -> None:
    """STO-26, BUG-13, DAT-05: by constraint; an empty twin would become the newest snapshot."""
    disks.create()
    box = reserve(boxes)
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
            box,
        )


def test_one_that_never_ran_leaves_nothing(boxes: Reservations, disks: Disks, queue: Queue) -> None:
    """LIF-24, STO-12: cancelled before the cloud has answered; no snapshot of an empty volume."""
    disks.create()
    box = reserve(boxes)
    queue.start()
    queue.cancel(box)
    boxes.facts(box, "exited", 0, exit_code=0)
    assert disks.show()["reservation_id"] == box, "an answer is awaited"
    assert disks.settle(3) == ["volume create", "volume delete"]
    assert disks.cloud.volumes == {}
    told = disks.show()
    assert (told["state"], told["snapshot_count"]) == ("available", 0)


def test_what_a_dead_pod_wrote_is_saved_before_another_can_have_it(
    boxes: Reservations, disks: Disks, queue: Queue
) -> None:
    """STO-22, LIF-12, STO-23: every ending is the same ending."""
    disks.create()
    box = reserve(boxes)
    queue.start()
    disks.settle(3)
    boxes.facts(box, "started", 0)
    disks.write(box, "precious")
    boxes.facts(box, "lost", 0, detail="its pod is gone")
    assert boxes.status(box) == "failed"
    after = reserve(boxes)
    assert queue.start() == []
    disks.settle(5)
    disks.complete()
    assert queue.start() == [after]
    disks.settle(3)
    assert disks.read(after) == ["precious"]


def test_a_volume_is_detached_by_force_in_the_end(
    boxes: Reservations, disks: Disks, queue: Queue
) -> None:
    """STO-21, STO-24, BUG-28: it is not saved while it is written to, and its user is notified."""
    disks.create()
    box = reserve(boxes)
    queue.start()
    disks.settle(3)
    volume = disks.volume(box)["cloud_id"]
    disks.cloud.attached.add(volume)
    boxes.facts(box, "lost", 0)
    done = disks.settle(290)
    assert "snapshot create" not in done
    assert disks.show()["reservation_id"] == box
    done = disks.settle(60)
    assert "volume detach" in done
    assert "snapshot create" in done


def test_no_second_snapshot_while_one_is_pending(
    boxes: Reservations, disks: Disks, queue: Queue
) -> None:
    """STO-10."""
    _saved(boxes, disks, queue)
    with pytest.raises(asyncpg.UniqueViolationError):
        queue.sql.execute(
            "insert into odc.disk_snapshot (disk_id, volume_id, kind, size_gib, asked_at) "
            "select disk_id, volume_id, kind, size_gib, now() from odc.disk_snapshot"
        )


def _saved(
    boxes: Reservations, disks: Disks, queue: Queue, word: str = "x", disk: str = "main"
) -> int:
    """A reservation that wrote on a disk and is over; its snapshot is pending."""
    if not queue.sql.value("select exists (select from odc.disk where name = $1)", disk):
        disks.create(disk)
    box = reserve(boxes, disk)
    assert queue.start() == [box]
    disks.settle(3)
    boxes.facts(box, "started", 0)
    disks.write(box, word)
    queue.cancel(box)
    boxes.facts(box, "exited", 0, exit_code=0)
    disks.settle(5)
    return box


def test_a_snapshot_that_fails_is_made_again_and_its_volume_stays(
    boxes: Reservations, disks: Disks, queue: Queue
) -> None:
    """STO-06, STO-08: an older one is never restored silently."""
    _saved(boxes, disks, queue, "old")
    disks.complete()
    _saved(boxes, disks, queue, "new")
    waits = reserve(boxes)
    for _ in range(3):
        queue.move(60)
        disks.work(lambda work: {"state": "error"} if work["verb"] == "look" else None)
        queue.move(60)
        disks.work()
    told = disks.show()
    assert told["state"] == "trouble"
    assert "failed 3 times" in told["trouble"]
    assert queue.start() == []
    assert len(disks.cloud.volumes) == 1
    disks.complete()
    assert disks.show()["trouble"] is None
    assert queue.start() == [waits]
    disks.settle(3)
    assert disks.read(waits) == ["old", "new"]


def test_a_volume_that_vanished_is_not_passed_over(
    boxes: Reservations, disks: Disks, queue: Queue
) -> None:
    """STO-06, STO-11, CLI-41: the next reservation reports it; only an operator can return to an
    older state."""
    _saved(boxes, disks, queue, "old")
    disks.complete()
    box = reserve(boxes)
    queue.start()
    disks.settle(3)
    boxes.facts(box, "started", 0)
    disks.cloud.volumes.clear()
    boxes.facts(box, "lost", 0)
    disks.settle(5)
    told = disks.show()
    assert (told["state"], told["reservation_id"]) == ("trouble", None)
    assert f"gone, and so is what reservation {box} wrote on it" in told["trouble"]
    error = refused(boxes, "main")
    assert isinstance(error, WrongState)
    with pytest.raises(Exception, match="may not unlock disks"):
        disks.act("unlock_disk", None, "main")
    assert disks.act("unlock_disk", "alice", "main", who=ROOT)["state"] == "available"
    after = reserve(boxes)
    queue.start()
    disks.settle(3)
    assert disks.read(after) == ["old"]


def refused(boxes: Reservations, disk: str) -> Exception:
    spec = ReservationSpec(
        script="#!/bin/sh\n", work_dir="/tmp", time_limit_s=HOUR, node_count=1, gpus_per_node=1,
        pty=True, asked={"disk": disk}, name="box",
    )  # fmt: skip
    [answer] = submit(boxes.sql, spec, now=boxes.queue.now)
    assert answer.code is not None
    return refusal(answer.code, answer.message or "", answer.hint)


def test_what_cannot_be_made_fails_with_the_clouds_words(
    boxes: Reservations, disks: Disks, queue: Queue
) -> None:
    """STO-11, BUG-09: three attempts, and never a temporary home instead of the named disk."""
    disks.create()
    box = reserve(boxes)
    for attempt in (1, 2, 3):
        queue.move(600)
        queue.sweep()
        assert queue.start() == [box], attempt
        disks.work(lambda _: {"refused": "VolumeLimitExceeded: ask for more"})
        assert queue.running(box)["intent"] == "member_failed"
        boxes.facts(box, "exited", 0, exit_code=0)
    told = boxes.show(box)
    assert told["status"] == "failed"
    assert 'disk "main" cannot be prepared: VolumeLimitExceeded' in told["failure_reason"]
    assert disks.show()["state"] == "available"
    assert disks.settle(5) == []


def test_trouble_with_the_cloud_is_tried_again_and_told(
    boxes: Reservations, disks: Disks, queue: Queue
) -> None:
    """STO-19."""
    disks.create()
    box = reserve(boxes)
    queue.start()
    for _ in range(3):
        disks.work(lambda _: {"busy": "RequestLimitExceeded"})
        queue.move(10)
    told = boxes.show(box)
    assert (told["status"], told["phase"]) == ("preparing", "disk")
    assert told["message"].endswith('disk "main" is being made: RequestLimitExceeded')
    assert disks.show()["trouble"] == "RequestLimitExceeded"
    disks.settle(5)
    assert disks.show()["trouble"] is None
    assert [p["phase"] for p in boxes.show(box)["phases"]] == ["queued", "starting", "disk"]


def test_answers_that_come_late_or_twice_change_nothing(
    boxes: Reservations, disks: Disks, queue: Queue
) -> None:
    """BUG-01, BUG-23."""
    disks.create()
    box = reserve(boxes)
    queue.start()
    [create] = disks.due()
    answer = disks.cloud.do(create)
    disks.note(create, answer)
    disks.note(create, answer)
    disks.settle(3)
    disks.note(create, answer)
    disks.note({**create, "verb": "look"}, {"state": "missing"})
    assert disks.volume(box)["state"] == "published"
    boxes.facts(box, "lost", 0)
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


def test_only_disks_there_are_can_be_asked_for(boxes: Reservations, disks: Disks) -> None:
    """STO-11: nothing of that name, another's, a deleted one."""
    disks.create("bobs", who=BOB)
    assert isinstance(refused(boxes, "nothing"), UnknownDisk)
    assert isinstance(refused(boxes, "bobs"), UnknownDisk)
    disks.create("gone")
    disks.act("delete_disk", None, "gone")
    assert isinstance(refused(boxes, "gone"), DiskDeleted)
    assert boxes.list(ALICE) == {}


def test_a_requeued_one_has_its_disk_again(boxes: Reservations, disks: Disks, queue: Queue) -> None:
    """LIF-25, STO-12: what the first attempt may have mounted is put away before the second."""
    disks.create()
    box = reserve(boxes)
    queue.start()
    disks.settle(3)
    disks.write(box, "shell files")
    boxes.facts(box, "start_failed", 0, cause="launch", detail="no such image yet")
    assert queue.pending(box)["lacks"] == "disk"
    disks.settle(5)
    assert queue.pending(box)["lacks"] == "snapshot"
    disks.complete()
    queue.move(600)
    queue.sweep()
    assert queue.start() == [box]
    disks.settle(3)
    assert disks.read(box) == ["shell files"]
    assert disks.volume(box)["attempt"] == 2


def test_contents_are_kept_with_the_snapshot(
    boxes: Reservations, disks: Disks, queue: Queue
) -> None:
    """STO-17, STO-18, CLI-39: shown without a reservation; none is no trouble."""
    _saved(boxes, disks, queue)
    disks.complete()
    told = disks.act("show_contents", None, "main")
    assert (told["snapshot_id"], told["contents"]) == (*disks.cloud.snapshots, None)
    box = reserve(boxes)
    queue.start()
    disks.settle(3)
    boxes.facts(box, "started", 0)
    queue.sql.execute("select odc.note_contents(0, $1, 1, $2, $3)", box, "4 KiB total\n", 4096)
    boxes.facts(box, "lost", 0)
    disks.settle(5)
    assert disks.act("show_contents", None, "main")["contents"] is None, "not completed yet"
    disks.complete()
    assert disks.act("show_contents", None, "main")["contents"] == "4 KiB total\n"
    assert disks.show()["used_bytes"] == 4096


def test_a_holder_that_nobody_knows_is_forgotten(
    boxes: Reservations, disks: Disks, queue: Queue
) -> None:
    """STO-21, BUG-08."""
    disks.create()
    queue.sql.execute("update odc.disk set holder = 1000000000")
    box = reserve(boxes)
    assert queue.start() == []
    queue.sweep()
    assert queue.start() == [box]


def test_what_is_expected_is_told_as_soon_as_it_changes(
    boxes: Reservations, disks: Disks, queue: Queue
) -> None:
    """The planner is woken, and with it the forecast: a holder that ends early brings others on."""
    disks.create()
    holder = reserve(boxes, hours=8)
    queue.start()
    disks.settle(3)
    boxes.facts(holder, "started", 0)
    reserve(boxes)
    judge = "select odc._judge_needs(null, $1)"
    assert not queue.sql.value(judge, queue.now)
    queue.cancel(holder)
    assert queue.sql.value(judge, queue.now)
    assert not queue.sql.value(judge, queue.now)
