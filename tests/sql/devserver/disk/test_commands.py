"""Changes of disks by users and operators, by the passing of time, and by a listing of the
cloud."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from odcd.errors import BadRequest, DiskDeleted, InUse, NotOwner, UnknownDisk, WrongState
from tests.support.builders.dev_servers import Reservations
from tests.support.builders.disks import Disks
from tests.support.builders.jobs import ALICE, BOB, ROOT, Queue


@pytest.fixture
def reservations(queue: Queue) -> Reservations:
    return Reservations(queue)


@pytest.fixture
def disks(queue: Queue) -> Disks:
    return Disks(queue)


def used(disks: Disks, reservations: Reservations, name: str = "main") -> None:
    """Use the disk in a dev server, and save it."""
    dev_server = reservations.reserve(details={"disk": name})
    assert disks.queue.start() == [dev_server]
    disks.settle(3)
    reservations.facts(dev_server, "started", 0)
    disks.write(dev_server, f"data of {dev_server}")
    reservations.facts(dev_server, "lost", 0)
    disks.settle(5)
    disks.complete()


@pytest.mark.parametrize("name", ["", "a b", "a/b", "ä", "x" * 51, "none", "a;b", "$(id)"])
def test_a_name_is_plain(disks: Disks, name: str) -> None:
    """CLI-37."""
    with pytest.raises(BadRequest):
        disks.create(name)


def test_a_users_disk_names_are_unique(disks: Disks) -> None:
    disks.create("a")
    with pytest.raises(InUse, match='disk "a" already exists'):
        disks.create("a")
    disks.create("a", who=BOB)
    for size in (0, 9, 16385):
        with pytest.raises(BadRequest):
            disks.create("big", size)


def test_a_list_has_the_users_own_disks(disks: Disks) -> None:
    """CLI-36, STO-19, AUT-09: only operators see disks of other users."""
    disks.create("a")
    disks.create("b", who=BOB)
    assert [d["name"] for d in disks.act("list_disks", None)] == ["a"]
    assert [d["name"] for d in disks.act("list_disks", "bob", who=ROOT)] == ["b"]
    assert [d["name"] for d in disks.act("list_disks", "all", who=ROOT)] == ["a", "b"]
    for user in ("bob", "all"):
        with pytest.raises(NotOwner):
            disks.act("list_disks", user)
    for verb in ("show_disk", "delete_disk", "show_contents"):
        with pytest.raises(NotOwner):
            disks.act(verb, "bob", "b")
        with pytest.raises(UnknownDisk):
            disks.act(verb, None, "b")


def test_a_disk_is_renamed(disks: Disks, reservations: Reservations, queue: Queue) -> None:
    """CLI-40: not while it is used or waited for, nor onto another, nor deleted; labels follow."""
    disks.create("a")
    disks.create("b")
    with pytest.raises(InUse):
        disks.act("rename_disk", None, "a", "b")
    with pytest.raises(UnknownDisk):
        disks.act("rename_disk", None, "c", "d")
    used(disks, reservations, "a")
    waits = reservations.reserve(details={"disk": "a"})
    with pytest.raises(InUse, match=f"reservation {waits} is waiting for it"):
        disks.act("rename_disk", None, "a", "c")
    queue.start()
    with pytest.raises(InUse, match=f"reservation {waits} is using it"):
        disks.act("rename_disk", None, "a", "c")
    queue.cancel(waits)
    reservations.facts(waits, "exited", 0)
    disks.settle(3)
    assert disks.act("rename_disk", None, "a", "c")["name"] == "c"
    [label] = [work for work in disks.due() if work["verb"] == "label"]
    assert label["tags"]["disk_name"] == "c"
    assert disks.settle(1) == ["snapshot label"]
    disks.act("delete_disk", None, "b")
    with pytest.raises(DiskDeleted):
        disks.act("rename_disk", None, "b", "e")


def test_a_deleted_disk_is_kept_for_a_while(
    disks: Disks, reservations: Reservations, queue: Queue
) -> None:
    """STO-15, CLI-38: for 30 days, with the date as a label of its snapshots."""
    disks.create("a")
    used(disks, reservations, "a")
    deleted = disks.act("delete_disk", None, "a")
    assert (deleted["state"], deleted["snapshot_count"]) == ("deleted", 1)
    purge_at = queue.now + timedelta(days=30)
    assert deleted["purge_at"].startswith(f"{purge_at:%Y-%m-%dT%H:%M}")
    [label] = disks.due()
    assert label["tags"]["delete-date"] == f"{purge_at:%Y-%m-%d}"
    assert "marked-deleted-at" in label["tags"]
    disks.settle(2)
    disks.create("a")
    assert [d["state"] for d in disks.act("list_disks", None)] == ["available", "deleted"]
    queue.sweep()
    assert disks.settle(1) == []
    queue.now = purge_at
    queue.sweep()
    assert disks.settle(1) == ["snapshot delete"]
    assert disks.cloud.snapshots == {}
    assert [d["state"] for d in disks.act("list_disks", None)] == ["available"]


def test_a_disk_in_use_is_not_deleted(
    disks: Disks, reservations: Reservations, queue: Queue
) -> None:
    disks.create("a")
    reservations.reserve(details={"disk": "a"})
    with pytest.raises(InUse):
        disks.act("delete_disk", None, "a")
    queue.start()
    with pytest.raises(InUse):
        disks.act("delete_disk", None, "a")


def test_three_snapshots_of_each_disk_are_kept(
    disks: Disks, reservations: Reservations, queue: Queue
) -> None:
    """STO-16: counted per disk, so that no disk loses its last one."""
    disks.create("a")
    disks.create("b")
    used(disks, reservations, "b")
    for _ in range(5):
        used(disks, reservations, "a")
    queue.sweep()
    disks.settle(2)
    assert [d["snapshot_count"] for d in disks.act("list_disks", None)] == [3, 1]
    assert len(disks.cloud.snapshots) == 4
    used(disks, reservations, "a")
    [*_, newest] = disks.cloud.snapshots.values()
    assert len(newest) == 6, "the newest is what was kept"


def test_a_clone_begins_as_the_newest_snapshot(
    disks: Disks, reservations: Reservations, queue: Queue
) -> None:
    """CLI-41: for operators; the source snapshot is kept while the clone needs it."""
    disks.create("a")
    with pytest.raises(WrongState, match="no completed snapshot"):
        disks.act("clone_disk", "alice", "a", None, "b", who=ROOT)
    used(disks, reservations, "a")
    with pytest.raises(NotOwner):
        disks.act("clone_disk", None, "a", None, "b")
    disks.create("own", who=BOB)
    clone = disks.act("clone_disk", "alice", "a", "bob", "b", who=ROOT)
    assert (clone["user"], clone["snapshot_count"]) == ("bob", 0)
    for _ in range(5):
        used(disks, reservations, "a")
    queue.sweep()
    disks.settle(2)
    assert len(disks.cloud.snapshots) == 4
    dev_server = reservations.reserve(BOB, details={"disk": "b"})
    queue.start()
    disks.settle(3)
    assert len(disks.read(dev_server)) == 1


def test_an_operator_cannot_unlock_a_disk_in_use(
    disks: Disks, reservations: Reservations, queue: Queue
) -> None:
    """CLI-41."""
    disks.create("a")
    reservations.reserve(details={"disk": "a"})
    queue.start()
    with pytest.raises(InUse):
        disks.act("unlock_disk", "alice", "a", who=ROOT)


def reconcile(disks: Disks, volumes: list[object], snapshots: list[object]) -> int | None:
    now = disks.queue.now
    return disks.sql.value(
        "select odc.reconcile_disks(0, $1::jsonb, $2::jsonb, $3, $3)",
        json.dumps(volumes), json.dumps(snapshots), now,
    )  # fmt: skip


def test_an_empty_listing_of_the_cloud_is_ignored(
    disks: Disks, reservations: Reservations, queue: Queue
) -> None:
    """STO-25, BUG-20, BUG-21: an empty answer proves nothing."""
    disks.create("a")
    used(disks, reservations, "a")
    queue.move(60)
    assert reconcile(disks, [], []) is None
    assert disks.show("a")["state"] == "available"


def test_unknown_volumes_and_snapshots_are_reported_and_left_alone(
    disks: Disks, reservations: Reservations, queue: Queue
) -> None:
    """STO-07, STO-25, BUG-12, BUG-24: a disk is never restored from a copy with our tags."""
    disks.create("a")
    used(disks, reservations, "a")
    queue.move(60)
    [saved] = disks.cloud.snapshots
    ours = {"id": saved, "operation": None, "tags": {}}
    copy = {"id": "snap-copy", "operation": None, "tags": {"disk_name": "a"}}
    assert reconcile(disks, [], [ours, copy]) == 1
    assert queue.sql.values("select cloud_id from odc.disk_stray") == ["snap-copy"]
    dev_server = reservations.reserve(details={"disk": "a"})
    queue.start()
    [create] = disks.due()
    assert create["snapshot_cloud_id"] == saved
    queue.move(60)
    # The answer for it has not arrived yet.
    mine = {"id": "vol-new", "operation": create["operation"], "tags": {}}
    assert reconcile(disks, [mine], [ours]) == 0
    assert disks.volume(dev_server)["cloud_id"] is None


def test_a_restored_database_restores_no_older_snapshot(
    disks: Disks, reservations: Reservations, queue: Queue
) -> None:
    """STO-06, STO-40: the cloud has a newer snapshot than the database; a copy does not count."""
    disks.create("a")
    used(disks, reservations, "a")
    queue.move(60)
    [saved] = disks.cloud.snapshots
    [known] = queue.sql.values("select operation::text from odc.disk_snapshot")
    ours = {"id": saved, "operation": known, "tags": {}}
    of_a = {"gpu-dev-user": "alice", "disk_name": "a"}
    copy = {"id": "snap-copy", "operation": known, "tags": {**of_a, "odc-operation": known}}
    assert reconcile(disks, [], [ours, copy]) == 1
    assert disks.show("a")["state"] == "available"
    waits = reservations.reserve(details={"disk": "a"})
    queue.move(60)
    newer = {"id": "snap-new", "operation": "x", "tags": {**of_a, "odc-operation": "x"}}
    assert reconcile(disks, [], [ours, copy, newer]) == 2
    disk = disks.show("a")
    assert disk["state"] == "trouble"
    assert "snapshot snap-new of it, which this database does not know" in disk["trouble"]
    assert queue.start() == []
    disks.act("unlock_disk", "alice", "a", who=ROOT)
    queue.move(60)
    assert reconcile(disks, [], [ours, copy, newer]) == 2
    assert queue.start() == [waits], "an operator has looked"


def test_events_of_disks_name_the_actor(disks: Disks, queue: Queue) -> None:
    disks.create("a")
    disks.act("rename_disk", None, "a", "b")
    disks.act("delete_disk", "alice", "b", who=ROOT)
    rows = queue.sql.rows("select kind, actor from odc.event where kind like 'disk%' order by id")
    assert [(row["kind"], row["actor"]) for row in rows] == [
        ("disk_created", ALICE.user), ("disk_renamed", "alice"), ("disk_deleted", "root"),
    ]  # fmt: skip
