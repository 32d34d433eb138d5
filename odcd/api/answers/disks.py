"""What /v1/disks answers."""

from __future__ import annotations

from typing import Literal

from odcd.api.answers.common import Answer


class Disk(Answer):
    """A home that outlives dev servers. state: available; in-use by reservation_id; backing-up:
    what that left on it is being saved; trouble: an operator must look; deleted: its snapshots go
    at purge_at. used_bytes: when it was last saved. snapshot_progress: percent, of the one that is
    being made. zone: of the volume that it is on while it is in use. trouble: why it cannot be
    used, or what its last step met with."""

    id: int
    name: str
    user: str
    uid: int
    size_gib: int
    used_bytes: int | None
    state: Literal["available", "in-use", "backing-up", "trouble", "deleted"]
    reservation_id: int | None
    created_at: str
    last_used_at: str | None
    snapshot_count: int
    pending_snapshot_count: int
    snapshot_progress: int | None
    last_snapshot_at: str | None
    last_snapshot_id: str | None
    volume_id: str | None
    zone: str | None
    trouble: str | None
    deleted_at: str | None
    purge_at: str | None


class DiskList(Answer):
    """default_gib: of a new disk; null: this daemon has no disks."""

    default_gib: int | None
    disks: list[Disk]


class Stray(Answer):
    """A volume or snapshot with our tags that no disk knows. user, disk: as its tags tell; tags are
    not believed, so nothing is done to it."""

    cloud_id: str
    kind: Literal["volume", "snapshot"]
    user: str | None
    disk: str | None
    tags: dict[str, str]
    first_at: str
    seen_at: str


class StrayList(Answer):
    strays: list[Stray]


class DiskContents(Answer):
    """What was on a disk when its newest snapshot was made. snapshot_id null: there is none yet;
    contents null: they were not listed."""

    name: str
    snapshot_id: str | None
    at: str | None
    used_bytes: int | None
    contents: str | None
