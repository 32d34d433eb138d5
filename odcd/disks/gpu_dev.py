"""Disks of gpu-dev, odc's predecessor, found by the tags of its volumes and snapshots."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from odcd.disks.cloud import ADOPTED, MANAGED_BY, ODC, SERVER, Snapshot, Volume

COPIED = "vol-ffffffff"
"""The volume that EC2 names as the source of a copied snapshot."""
LISTING = "snapshot_content_s3"
"""gpu-dev's tag: where it stored the listing of a snapshot's files."""
DELETED = "delete-date"
"""gpu-dev's tag of the snapshots of a deleted disk, and odc's."""

Found = dict[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class TagNames:
    """Tags by which an installation of gpu-dev marks its volumes and snapshots. kind: why gpu-dev
    made a snapshot; copies that other tools make of a volume lack it."""

    user: str = "gpu-dev-user"
    disk: str = "disk_name"
    kind: str = "SnapshotType"


def find_disks(
    volumes: Iterable[Volume], snapshots: Iterable[Snapshot], names: TagNames
) -> list[Found]:
    """Each disk with what its newest data is in, or with the reason to skip it.

    volumes, snapshots: all with the tag names.user. Each disk is {gpu_dev_user, gpu_dev_disk, kind:
    snapshot, volume or None, cloud_id, source: the volume's id, size_gib, snapshot_count,
    last_used_at, kms_key, contents, server: the odc server that adopted it, skip, note}.
    """
    groups: dict[tuple[str, str], tuple[list[Volume], list[Snapshot]]] = {}
    for volume in volumes:
        if volume.state in ("creating", "available", "in-use") and _is_foreign(volume.tags):
            _group(groups, volume.tags, names)[0].append(volume)
    for snapshot in snapshots:
        if snapshot.state != "error" and _is_foreign(snapshot.tags):
            _group(groups, snapshot.tags, names)[1].append(snapshot)
    return [
        {"gpu_dev_user": user, "gpu_dev_disk": disk, **_judge(disk, *both, names)}
        for (user, disk), both in sorted(groups.items())
    ]


def _is_foreign(tags: Mapping[str, str]) -> bool:
    """Not made by an odc, but perhaps adopted by one."""
    return tags.get(MANAGED_BY) != ODC or ADOPTED in tags


def _group(
    groups: dict[tuple[str, str], tuple[list[Volume], list[Snapshot]]],
    tags: Mapping[str, str],
    names: TagNames,
) -> tuple[list[Volume], list[Snapshot]]:
    return groups.setdefault((tags.get(names.user, ""), tags.get(names.disk, "")), ([], []))


def _judge(
    disk: str, volumes: Sequence[Volume], snapshots: Sequence[Snapshot], names: TagNames
) -> Found:
    own = [one for one in snapshots if names.kind in one.tags and one.volume_id != COPIED]
    own.sort(key=lambda one: (one.started_at, one.id))
    completed = [one for one in own if one.state == "completed"]
    newest = completed[-1] if completed else None
    unsaved = sorted(
        (one for one in volumes if newest is None or _may_be_newer(one, newest)),
        key=lambda one: one.id,
    )
    source = unsaved[0] if unsaved else newest
    facts = _facts(source, newest, volumes)
    facts["snapshot_count"] = len(completed)
    facts["skip"] = _why_skip(disk, volumes, own, newest, unsaved)
    stale = sorted(one.id for one in volumes if one not in unsaved)
    if stale and facts["skip"] is None:
        facts["note"] = f"the older {_named(stale)} of this disk in gpu-dev is not imported"
    return facts


def _may_be_newer(volume: Volume, newest: Snapshot) -> bool:
    """Whether the volume may have data that the newest snapshot lacks. gpu-dev makes a snapshot
    before the volume's last use is over, and each volume from the newest snapshot."""
    made_at = volume.created_at.replace(microsecond=0)
    # Within a second the order is not known: EC2's times of volumes and snapshots may be rounded.
    return volume.id == newest.volume_id or made_at >= newest.started_at.replace(microsecond=0)


def _why_skip(
    disk: str, volumes: Sequence[Volume], own: Sequence[Snapshot], newest: Snapshot | None,
    unsaved: Sequence[Volume],
) -> str | None:  # fmt: skip
    used = sorted(one.id for one in volumes if one.state != "available")
    if not disk:
        example = [one.id for one in (*own, *volumes)][:1]
        return f"no tag has the disk's name{f': see {example[0]}' if example else ''}"
    if used:
        return f"gpu-dev is using it: {_named(used)} is attached or is being created"
    if not own and not volumes:
        return "other tools made all its snapshots; odc imports only those of gpu-dev"
    if own and own[-1].state != "completed":
        return f"gpu-dev is saving it: {own[-1].id} is at {own[-1].progress} %"
    if own and DELETED in own[-1].tags:
        return f"it is deleted in gpu-dev; its snapshots are kept until {own[-1].tags[DELETED]}"
    if len(unsaved) > 1:
        ids = " and ".join(one.id for one in unsaved)
        return (
            f"it has several volumes that may be the newest, {ids}: remove the tag with the disk's "
            "name from the wrong ones"
        )
    return None


def _facts(
    source: Volume | Snapshot | None, newest: Snapshot | None, volumes: Sequence[Volume]
) -> Found:
    moments = [one.created_at for one in volumes]
    moments += [newest.started_at] if newest is not None else []
    facts: Found = {
        "kind": None, "cloud_id": None, "source": None, "size_gib": None, "kms_key": None,
        "contents": None, "server": None, "note": None,
        "last_used_at": _moment(max(moments)) if moments else None,
    }  # fmt: skip
    if source is not None:
        facts |= {
            "cloud_id": source.id,
            "size_gib": source.size_gib,
            "kms_key": source.kms_key,
            "server": source.tags.get(SERVER),
        }
    if isinstance(source, Snapshot):
        listing = source.tags.get(LISTING)
        facts |= {
            "kind": "snapshot",
            "source": source.volume_id,
            "contents": f"gpu-dev listed the files of this snapshot in {listing}"
            if listing
            else None,
        }
    elif source is not None:
        facts |= {"kind": "volume", "source": source.id}
    return facts


def _named(ids: Sequence[str]) -> str:
    return f"volume {', '.join(ids)}"


def _moment(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
