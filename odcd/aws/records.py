"""Converts AWS responses for volumes, snapshots and access points to records, and checks their
owner."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from odcd.disks.cloud import (
    MANAGED_BY,
    ODC,
    OPERATION,
    SERVER,
    AccessPoint,
    AccessPointState,
    Snapshot,
    SnapshotState,
    Volume,
    VolumeState,
)

if TYPE_CHECKING:
    from types_aiobotocore_ec2.type_defs import (
        FilterTypeDef,
        SnapshotResponseTypeDef,
        SnapshotTypeDef,
        VolumeResponseTypeDef,
        VolumeTypeDef,
    )
    from types_aiobotocore_ec2.type_defs import TagTypeDef as Ec2TagTypeDef
    from types_aiobotocore_efs.type_defs import (
        AccessPointDescriptionResponseTypeDef,
        AccessPointDescriptionTypeDef,
        TagTypeDef,
    )

SNAPSHOT_OF = "odc-snapshot-of"
"""Tag of a snapshot: the volume that odc made it from. Snapshots that others make of a volume get
the volume's tags, so they lack this one. Copies that others make of a snapshot have it, but come
from no volume."""
MAX_TAG = 256
_VOLUME: Mapping[str, VolumeState] = {
    "creating": "creating",
    "available": "available",
    "in-use": "in-use",
    "deleting": "deleting",
}
_SNAPSHOT: Mapping[str, SnapshotState] = {
    "pending": "pending",
    "recovering": "pending",
    "completed": "completed",
}
_ACCESS_POINT: Mapping[str, AccessPointState] = {
    "creating": "creating",
    "updating": "creating",
    "available": "available",
    "deleting": "deleting",
}


def token(server_id: str, operation: str) -> str:
    """A client token, of at most 64 characters. It includes the server, because another server in
    the account may use the same operation names."""
    return hashlib.sha256(f"{server_id} {operation}".encode()).hexdigest()


def tag_list(tags: Mapping[str, str]) -> list[Any]:
    """Tags in the form that EC2 and EFS accept."""
    return [{"Key": key, "Value": value[:MAX_TAG]} for key, value in tags.items()]


def tag_filter(key: str, value: str) -> FilterTypeDef:
    """A filter that matches the value literally."""
    return {"Name": f"tag:{key}", "Values": [_literal(value)]}


def key_filter(key: str) -> FilterTypeDef:
    """A filter that matches resources with this tag, whatever its value."""
    return {"Name": "tag-key", "Values": [_literal(key)]}


def _literal(text: str) -> str:
    """Without wildcards: they are escaped."""
    return "".join(f"\\{c}" if c in "\\*?" else c for c in text[:MAX_TAG])


def tags_of(entries: Iterable[TagTypeDef | Ec2TagTypeDef]) -> dict[str, str]:
    return {tag.get("Key", ""): tag.get("Value", "") for tag in entries}


def own_tags(server_id: str, operation: str) -> dict[str, str]:
    return {
        MANAGED_BY: ODC,
        SERVER: server_id[:MAX_TAG],
        OPERATION: operation[:MAX_TAG],
    }


def is_of(tags: Mapping[str, str], server_id: str) -> bool:
    return (tags.get(MANAGED_BY), tags.get(SERVER)) == (ODC, server_id[:MAX_TAG])


def is_authored(snapshot: Snapshot, server_id: str) -> bool:
    """Whether odc made the snapshot itself, rather than someone copying its tags."""
    return is_of(snapshot.tags, server_id) and snapshot.tags.get(SNAPSHOT_OF) == snapshot.volume_id


def volume_of(entry: VolumeTypeDef | VolumeResponseTypeDef) -> Volume | None:
    """Return None if the volume is deleted and only still listed."""
    state = entry.get("State")
    if state == "deleted":
        return None
    return Volume(
        id=entry.get("VolumeId", ""),
        state=_VOLUME.get(str(state), "error"),
        zone=entry.get("AvailabilityZone", ""),
        size_gib=entry.get("Size", 0),
        created_at=entry["CreateTime"],  # pyright: ignore[reportTypedDictNotRequiredAccess]
        kms_key=entry.get("KmsKeyId"),
        tags=tags_of(entry.get("Tags", [])),
    )


def snapshot_of(entry: SnapshotTypeDef | SnapshotResponseTypeDef) -> Snapshot | None:
    """Return None if the snapshot is deleted and in the recycle bin."""
    state = entry.get("State")
    if state == "recoverable":
        return None
    percent = entry.get("Progress", "").removesuffix("%")
    return Snapshot(
        id=entry.get("SnapshotId", ""),
        state=_SNAPSHOT.get(str(state), "error"),
        progress=100 if state == "completed" else int(percent) if percent.isdecimal() else 0,
        volume_id=entry.get("VolumeId", ""),
        size_gib=entry.get("VolumeSize", 0),
        kms_key=entry.get("KmsKeyId"),
        started_at=entry["StartTime"],  # pyright: ignore[reportTypedDictNotRequiredAccess]
        tags=tags_of(entry.get("Tags", [])),
    )


def access_point_of(
    entry: AccessPointDescriptionTypeDef | AccessPointDescriptionResponseTypeDef,
) -> AccessPoint:
    user = entry.get("PosixUser")
    return AccessPoint(
        id=entry.get("AccessPointId", ""),
        state=_ACCESS_POINT.get(str(entry.get("LifeCycleState")), "error"),
        path=entry.get("RootDirectory", {}).get("Path", "/"),
        uid=user["Uid"] if user else -1,
        gid=user["Gid"] if user else -1,
        tags=tags_of(entry.get("Tags", [])),
    )
