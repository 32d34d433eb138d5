"""Answers of /v1/disks."""

from __future__ import annotations

from typing import Literal

from odcd.api.answers.common import Answer


class Disk(Answer):
    """A home folder that outlives dev servers. state: available; in-use by reservation_id;
    backing-up: its data is being saved in a snapshot; trouble: an operator must check it; deleted:
    its snapshots are deleted at purge_at. used_bytes: as of the last snapshot. snapshot_progress:
    percent, of the snapshot being made. zone: of its volume while it is in use. trouble: why the
    disk cannot be used, or the error of its last step."""

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
    """default_gib: the size of a new disk; null: this daemon has no disks."""

    default_gib: int | None
    disks: list[Disk]


class Stray(Answer):
    """A volume or snapshot with odc's tags that belongs to no disk. user, disk: from its tags.
    Tags are not trusted, so odc does not touch it."""

    cloud_id: str
    kind: Literal["volume", "snapshot"]
    user: str | None
    disk: str | None
    tags: dict[str, str]
    first_at: str
    seen_at: str


class StrayList(Answer):
    strays: list[Stray]


class ImportedDisk(Answer):
    """A disk of gpu-dev. kind: what its newest data is in, and cloud_id: which one; null: nothing
    that can be imported. user, name: of the disk here. outcome: import: it can be imported;
    imported; present: it was imported before; skipped. why: of the last two. note: what is left in
    gpu-dev. kms_key: null: it is not encrypted."""

    gpu_dev_user: str
    gpu_dev_disk: str
    kind: Literal["snapshot", "volume"] | None
    cloud_id: str | None
    size_gib: int | None
    snapshot_count: int
    last_used_at: str | None
    kms_key: str | None
    user: str
    name: str | None
    outcome: Literal["import", "imported", "present", "skipped"]
    why: str | None
    note: str | None


class DiskImport(Answer):
    """A list of gpu-dev's disks, and their import if apply is true. state: wanted: the leader has
    not listed the cloud yet, trouble: why; done; refused: the cloud refused it, trouble: why."""

    id: int
    state: Literal["wanted", "done", "refused"]
    apply: bool
    user: str
    asked_at: str
    trouble: str | None
    disks: list[ImportedDisk]


class DiskContents(Answer):
    """The files on a disk when its newest snapshot was made. snapshot_id null: no snapshot exists
    yet. contents null: they were not listed."""

    name: str
    snapshot_id: str | None
    at: str | None
    used_bytes: int | None
    contents: str | None
