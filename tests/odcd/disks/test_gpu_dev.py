"""Which data of gpu-dev's disks is the newest, from the tags and times of volumes and snapshots."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from odcd.disks.cloud import Snapshot, Volume
from odcd.disks.gpu_dev import COPIED, TagNames, find_disks

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(hour: float) -> datetime:
    return START + timedelta(hours=hour)


def tags(**more: str) -> dict[str, str]:
    return {"gpu-dev-user": "alice", "disk_name": "main", **more}


def a_volume(id: str, hour: float, **fields: Any) -> Volume:
    base: dict[str, Any] = {"state": "available", "zone": "z", "size_gib": 20, "tags": tags()}
    return Volume(id=id, created_at=at(hour), **{**base, **fields})


def a_snapshot(id: str, hour: float, volume_id: str = "vol-gone", **fields: Any) -> Snapshot:
    base: dict[str, Any] = {"state": "completed", "progress": 100, "size_gib": 20}
    base["tags"] = tags(SnapshotType="shutdown")
    return Snapshot(id=id, started_at=at(hour), volume_id=volume_id, **{**base, **fields})


def found(*objects: Volume | Snapshot) -> dict[str, Any]:
    volumes = [one for one in objects if isinstance(one, Volume)]
    snapshots = [one for one in objects if isinstance(one, Snapshot)]
    [disk] = find_disks(volumes, snapshots, TagNames())
    return disk


def source(*objects: Volume | Snapshot) -> object:
    disk = found(*objects)
    return disk["skip"] or disk["cloud_id"]


def test_the_newest_completed_snapshot_counts() -> None:
    disk = found(a_snapshot("s1", 1), a_snapshot("s3", 3), a_snapshot("s2", 2))
    assert (disk["cloud_id"], disk["kind"], disk["snapshot_count"]) == ("s3", "snapshot", 3)
    assert (disk["source"], disk["skip"], disk["note"]) == ("vol-gone", None, None)
    assert disk["last_used_at"] == "2026-01-01T03:00:00Z"


def test_a_volume_made_after_the_newest_snapshot_is_newer() -> None:
    disk = found(a_snapshot("s1", 1), a_volume("v2", 2))
    assert (disk["cloud_id"], disk["kind"], disk["source"]) == ("v2", "volume", "v2")
    assert found(a_volume("v1", 0))["cloud_id"] == "v1"
    # In the same second, the order is not known.
    assert source(a_snapshot("s1", 1.0001), a_volume("v2", 1)) == "v2"


def test_a_volume_whose_snapshot_exists_may_have_been_written_to_since() -> None:
    """gpu-dev makes the snapshot while the pod still runs."""
    assert source(a_volume("v1", 0), a_snapshot("s1", 1, "v1")) == "v1"


def test_an_older_volume_is_left_alone_and_mentioned() -> None:
    disk = found(a_volume("v1", 0), a_snapshot("s1", 1, "v1"), a_snapshot("s2", 3, "v2"))
    assert (disk["cloud_id"], disk["skip"]) == ("s2", None)
    assert disk["note"] == "the older volume v1 of this disk in gpu-dev is not imported"


def test_several_volumes_that_may_be_the_newest_are_not_guessed_between() -> None:
    """STO-25: duplicates are reported."""
    why = source(a_snapshot("s1", 1), a_volume("v3", 3), a_volume("v2", 2))
    assert "several volumes that may be the newest, v2 and v3" in str(why)


@pytest.mark.parametrize("state", ["in-use", "creating"])
def test_a_disk_in_use_is_skipped_whatever_else_it_has(state: str) -> None:
    why = source(a_snapshot("s9", 9), a_volume("v1", 1, state=state))
    assert why == "gpu-dev is using it: volume v1 is attached or is being created"


def test_a_snapshot_that_is_being_made_is_waited_for() -> None:
    pending = a_snapshot("s2", 2, state="pending", progress=40)
    assert source(a_snapshot("s1", 1), pending) == "gpu-dev is saving it: s2 is at 40 %"
    # An older one does not matter.
    assert source(a_snapshot("s3", 3), pending) == "s3"


def test_a_failed_snapshot_and_a_deleted_volume_do_not_count() -> None:
    failed = a_snapshot("s2", 2, state="error", progress=0)
    assert source(a_snapshot("s1", 1), failed, a_volume("v3", 3, state="deleting")) == "s1"


def test_a_deleted_disk_is_skipped_and_one_made_again_is_not() -> None:
    deleted = a_snapshot("s1", 1, tags=tags(**{"SnapshotType": "x", "delete-date": "2026-02-01"}))
    why = source(deleted)
    assert why == "it is deleted in gpu-dev; its snapshots are kept until 2026-02-01"
    assert source(deleted, a_snapshot("s2", 2)) == "s2"


def test_copies_and_snapshots_of_other_tools_do_not_count() -> None:
    copy = a_snapshot("s8", 8, COPIED)
    backup = a_snapshot("s9", 9, tags=tags())
    assert source(a_snapshot("s1", 1), copy, backup) == "s1"
    assert "other tools made all its snapshots" in str(source(copy, backup))


def test_what_odc_made_is_not_gpu_devs() -> None:
    own = {**tags(SnapshotType="shutdown"), "ManagedBy": "odc"}
    volume, snapshot = a_volume("v1", 1, tags=own), a_snapshot("s1", 1, tags=own)
    assert find_disks([volume], [snapshot], TagNames()) == []
    adopted = {**own, "odc-adopted": "gpu-dev", "odc-server": "this"}
    assert found(a_snapshot("s1", 1, tags=adopted))["server"] == "this"


def test_a_snapshot_without_a_disk_name_is_reported() -> None:
    nameless = a_snapshot("s1", 1, tags={"gpu-dev-user": "alice", "SnapshotType": "x"})
    assert source(nameless) == "no tag has the disk's name: see s1"


def test_the_names_of_tags_are_chosen() -> None:
    own = {"u": "bob", "d": "data", "k": "end"}
    [disk] = find_disks([], [a_snapshot("s1", 1, tags=own)], TagNames(user="u", disk="d", kind="k"))
    assert (disk["gpu_dev_user"], disk["gpu_dev_disk"]) == ("bob", "data")
    assert disk["cloud_id"] == "s1"
