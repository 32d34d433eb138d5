"""What a cloud does for disks: volumes, their snapshots, and places on a shared file system.

Whoever calls keeps what it wants in the database first. Every call may be repeated: what is to be
made has the name of its operation, and a name never makes two things.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, Protocol

MANAGED_BY, ODC = "ManagedBy", "odc"
SERVER = "odc-server"
OPERATION = "odc-operation"
"""The tags by which we know our own; every call that makes something adds them itself."""

VolumeState = Literal["creating", "available", "in-use", "deleting", "error"]
SnapshotState = Literal["pending", "completed", "error"]
AccessPointState = Literal["creating", "available", "deleting", "error"]


class CloudBusy(Exception):
    """It did not do it now: throttled, in trouble, or silent. Try again.

    sent: it may have been done all the same.
    """

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.message = message
        self.sent = sent


class CloudRefused(Exception):
    """It will never do it as it was asked; users are told why. code: the cloud's own name of it."""

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
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """progress: percent. It is of the moment at which it was started, even while it is pending."""

    id: str
    state: SnapshotState
    progress: int
    volume_id: str
    started_at: datetime
    tags: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessPoint:
    """A folder of the shared file system, and whose files are in it."""

    id: str
    state: AccessPointState
    path: str
    uid: int
    gid: int
    tags: Mapping[str, str]


class Cloud(Protocol):
    """Every call raises CloudBusy or CloudRefused, and lists nothing in part.

    The create calls are idempotent by operation, which is unique in the server's life: an
    unanswered call is repeated as it was.
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
        """snapshot_id: what is on it; None: nothing. size_gib: no less than the snapshot's."""
        ...

    async def volumes(self, ids: Sequence[str]) -> dict[str, Volume]:
        """By id. An id that is absent: the cloud says that there is no such volume (any more)."""
        ...

    async def detach_volume(self, id: str, *, force: bool) -> None:
        """From whichever node it is attached to. It is detached already, or gone: fine. force:
        without asking that node, which may lose what it has not written."""
        ...

    async def delete_volume(self, id: str) -> None:
        """Gone already is fine. One that is attached: CloudBusy."""
        ...

    async def create_snapshot(
        self, operation: str, *, volume_id: str, tags: Mapping[str, str]
    ) -> Snapshot:
        """If one of this volume is pending that we started, it is that one: see its operation in
        its tags."""
        ...

    async def snapshots(self, ids: Sequence[str]) -> dict[str, Snapshot]:
        """As volumes()."""
        ...

    async def delete_snapshot(self, id: str) -> None:
        """Gone already is fine."""
        ...

    async def tag(self, ids: Sequence[str], tags: Mapping[str, str]) -> None:
        """Add these to volumes and snapshots, or change them."""
        ...

    async def list_volumes(self) -> list[Volume]:
        """All that this server made."""
        ...

    async def list_snapshots(self) -> list[Snapshot]:
        """All that this server made itself; no copies that others made, tags and all."""
        ...

    async def create_access_point(
        self, operation: str, *, uid: int, gid: int, path: str, tags: Mapping[str, str]
    ) -> AccessPoint:
        """Files below path are uid's and gid's, whoever writes them. If there is one of that path
        that we made, it is that one; if there are several, all lead to the same files."""
        ...

    async def access_points(self) -> list[AccessPoint]:
        """All that this server made."""
        ...
