"""The tags of volumes and snapshots, for people who look at them in the cloud. odc itself uses
ids."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

SnapshotKind = Literal["initial", "shutdown", "cancellation", "migration"]


def volume_tags(user: str, disk: str, *, created_at: datetime, used_at: datetime) -> dict[str, str]:
    return {
        "Name": f"odc-disk-{user}-{disk}",
        "gpu-dev-user": user,
        "disk_name": disk,
        "created_at": _moment(created_at),
        "last_used": _moment(used_at),
    }


def snapshot_tags(
    user: str, disk: str, kind: SnapshotKind, *, created_at: datetime, size_gib: int
) -> dict[str, str]:
    return {
        "Name": f"odc-disk-{user}-{disk}",
        "gpu-dev-user": user,
        "disk_name": disk,
        "SnapshotType": kind,
        "created_at": _moment(created_at),
        "disk_size": str(size_gib),
    }


def contents_tag(kept: str) -> dict[str, str]:
    """Added when the listing of the disk's contents is stored. kept: its location, for example its
    path in the API."""
    return {"snapshot_content_s3": kept}


def deleted_tags(*, marked_at: datetime, delete_at: datetime) -> dict[str, str]:
    """Tags of the snapshots of a disk that its user deleted, until they are purged."""
    return {"delete-date": _moment(delete_at)[:10], "marked-deleted-at": _moment(marked_at)}


def _moment(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
