"""The operations of a cloud for disks: volumes, snapshots, and folders on a shared file system.

Callers record their intent in the database first. Every call can be repeated: each resource is
named after its operation, and a name never creates two resources.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

MANAGED_BY, ODC = "ManagedBy", "odc"
SERVER = "odc-server"
OPERATION = "odc-operation"
"""The tags that identify odc's own resources; every create call adds them."""
ADOPTED = "odc-adopted"
"""The tag of a snapshot that odc has not made, but owns: the program that made it."""

VolumeState = Literal["creating", "available", "in-use", "deleting", "error"]
SnapshotState = Literal["pending", "completed", "error"]
AccessPointState = Literal["creating", "available", "deleting", "error"]


class CloudBusy(Exception):
    """The cloud did not do it now: it throttled, failed or did not answer. Try again.

    sent: it may have been done anyway.
    """

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.message = message
        self.sent = sent


class CloudRefused(Exception):
    """The cloud will never do this request; users see the reason. code: the cloud's error code."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """in-use: attached to a node."""

    id: str
    state: VolumeState
    zone: str
    size_gib: int
    created_at: datetime
    tags: Mapping[str, str]
    kms_key: str | None = None
    """None: it is not encrypted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """progress: percent. The content is that of the moment the snapshot was started, even while it
    is pending."""

    id: str
    state: SnapshotState
    progress: int
    volume_id: str
    size_gib: int
    started_at: datetime
    tags: Mapping[str, str]
    kms_key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessPoint:
    """A folder of the shared file system, and the owner of its files."""

    id: str
    state: AccessPointState
    path: str
    uid: int
    gid: int
    tags: Mapping[str, str]


class Cloud(Protocol):
    """Every call raises CloudBusy or CloudRefused, and lists are never partial.

    The create calls are idempotent by operation, which is unique in the server's lifetime: an
    unanswered call is repeated unchanged.
    """

    async def create_volume(
        self,
        operation: str,
        *,
        zone: str,
        size_gib: int,
        snapshot_id: str | None,
        tags: Mapping[str, str],
    ) -> Volume:
        """snapshot_id: the initial contents; None: empty. size_gib: at least the snapshot's."""
        ...

    async def volumes(self, ids: Sequence[str]) -> dict[str, Volume]:
        """By id. An id that is absent does not exist (any longer), according to the cloud."""
        ...

    async def detach_volume(self, id: str, *, force: bool) -> None:
        """Detach it from any node. If it is detached or gone already, this succeeds. force: do not
        wait for the node, which may lose data that it has not written."""
        ...

    async def delete_volume(self, id: str) -> None:
        """Succeeds if it is gone already. Raises CloudBusy if it is attached."""
        ...

    async def create_snapshot(
        self, operation: str, *, volume_id: str, tags: Mapping[str, str]
    ) -> Snapshot:
        """If a snapshot of this volume that odc started is pending, return that one: its operation
        is in its tags."""
        ...

    async def snapshots(self, ids: Sequence[str]) -> dict[str, Snapshot]:
        """Same as volumes()."""
        ...

    async def delete_snapshot(self, id: str) -> None:
        """Succeeds if it is gone already."""
        ...

    async def adopt_snapshot(
        self, operation: str, id: str, *, tags: Mapping[str, str]
    ) -> Snapshot | None:
        """Make a snapshot that gpu-dev made one of this server's, by its tags; the others stay.
        None: it does not exist. Raises CloudRefused if another server has it."""
        ...

    async def tag(self, ids: Sequence[str], tags: Mapping[str, str]) -> None:
        """Add these tags to volumes and snapshots, or change them."""
        ...

    async def list_volumes(self) -> list[Volume]:
        """All volumes that this server made."""
        ...

    async def list_snapshots(self) -> list[Snapshot]:
        """All snapshots that this server made itself, without copies that others made with the same
        tags."""
        ...

    async def list_tagged(self, key: str) -> tuple[list[Volume], list[Snapshot]]:
        """All volumes and snapshots of the account with this tag, regardless of their origin."""
        ...

    async def create_access_point(
        self, operation: str, *, uid: int, gid: int, path: str, tags: Mapping[str, str]
    ) -> AccessPoint:
        """Files below path belong to uid and gid, whoever writes them. If odc already made one for
        that path, return it; if there are several, all lead to the same files."""
        ...

    async def access_points(self) -> list[AccessPoint]:
        """All access points that this server made."""
        ...
