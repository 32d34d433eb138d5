"""EBS snapshots, and the tags of snapshots and volumes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from odcd.aws import records as aws_records
from odcd.aws.errors import asking
from odcd.aws.link import Limits, Link
from odcd.call_metrics import NOBODY, Calls
from odcd.clock import Clock
from odcd.disks.cloud import (
    ADOPTED,
    MANAGED_BY,
    OPERATION,
    SERVER,
    CloudBusy,
    CloudRefused,
    Snapshot,
)
from odcd.disks.settings import DiskSettings

if TYPE_CHECKING:
    from types_aiobotocore_ec2.type_defs import FilterTypeDef, SnapshotTypeDef

PAGE = 1000
MAX_TAGGED = 500
GONE = "InvalidSnapshot.NotFound"
GPU_DEV = "gpu-dev"


class Snapshots(Link):
    def __init__(
        self, settings: DiskSettings, server_id: str, clock: Clock, limits: Limits | None = None,
        calls: Calls = NOBODY,
    ) -> None:  # fmt: skip
        super().__init__(settings, server_id, clock, limits, calls)
        self._unanswered: dict[str, float] = {}
        """By volume: when a snapshot of it was requested without an answer."""
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def create_snapshot(
        self, operation: str, *, volume_id: str, tags: Mapping[str, str]
    ) -> Snapshot:
        """See odcd.disks.cloud.Cloud, also for the other methods.

        EC2 has no client token for snapshots. So this first looks for an existing one, and sends no
        new request while the result of an unanswered one may be missing from the lists.
        """
        turn = self._turns.setdefault(volume_id, asyncio.Lock())
        async with turn:
            found = await self._snapshot_by(operation, volume_id)
            if found is None:
                found = await self._create_snapshot(operation, volume_id, tags)
            self._unanswered.pop(volume_id, None)
        return found

    async def _create_snapshot(
        self, operation: str, volume_id: str, tags: Mapping[str, str]
    ) -> Snapshot:
        now = self._clock.monotonic()
        if now - self._unanswered.get(volume_id, -1e9) < self._limits.settle_s:
            raise CloudBusy(f"AWS may already be creating a snapshot of {volume_id}", sent=True)
        all_tags = {
            **tags,
            **aws_records.own_tags(self._server_id, operation),
            aws_records.SNAPSHOT_OF: volume_id,
        }
        # Set before the request is sent: a cancelled task also leaves it unanswered.
        self._unanswered[volume_id] = now
        try:
            async with asking(f"create a snapshot of {volume_id}"):
                answer = await self._ec2_once.create_snapshot(
                    VolumeId=volume_id,
                    TagSpecifications=[
                        {"ResourceType": "snapshot", "Tags": aws_records.tag_list(all_tags)}
                    ],
                )
        except CloudBusy as error:
            if not error.sent:
                del self._unanswered[volume_id]
            raise
        except CloudRefused:
            del self._unanswered[volume_id]
            raise
        snapshot = aws_records.snapshot_of(answer)
        if snapshot is None:
            raise CloudBusy("AWS created a snapshot that is already deleted", sent=True)
        self._note_new(snapshot.id)
        return snapshot

    async def snapshots(self, ids: Sequence[str]) -> dict[str, Snapshot]:
        return await self._by_id(ids, self._some_snapshots, self._find_snapshot)

    async def delete_snapshot(self, id: str) -> None:
        async with asking(f"delete {id}", GONE):
            await self._ec2.delete_snapshot(SnapshotId=id)
        self._new.pop(id, None)

    async def adopt_snapshot(
        self, operation: str, id: str, *, tags: Mapping[str, str]
    ) -> Snapshot | None:
        found = (await self.snapshots([id])).get(id)
        if found is None:
            return None
        if found.tags.get(SERVER, self._server_id) != self._server_id:
            raise CloudRefused("AlreadyAdopted", f"{id} belongs to another odc")
        own = {
            **tags,
            **aws_records.own_tags(self._server_id, operation),
            aws_records.SNAPSHOT_OF: found.volume_id,
            ADOPTED: found.tags.get(ADOPTED) or found.tags.get(MANAGED_BY) or GPU_DEV,
        }
        async with asking(f"add odc's tags to {id}"):
            await self._ec2.create_tags(Resources=[id], Tags=aws_records.tag_list(own))
        return found

    async def tag(self, ids: Sequence[str], tags: Mapping[str, str]) -> None:
        for at in range(0, len(ids), MAX_TAGGED):
            async with asking("tag the new snapshot"):
                await self._ec2.create_tags(
                    Resources=ids[at : at + MAX_TAGGED], Tags=aws_records.tag_list(tags)
                )

    async def list_snapshots(self) -> list[Snapshot]:
        return self._authored(await self._list_snapshots(self._ours()))

    async def list_tagged_snapshots(self, key: str) -> list[Snapshot]:
        return await self._list_snapshots([aws_records.key_filter(key)])

    async def _snapshot_by(self, operation: str, volume_id: str) -> Snapshot | None:
        """The snapshot of this operation, else one that is pending."""
        listed = await self._list_snapshots([{"Name": "volume-id", "Values": [volume_id]}])
        ours = sorted(self._authored(listed), key=lambda one: (one.started_at, one.id))
        name = aws_records.own_tags(self._server_id, operation)[OPERATION]
        same = [one for one in ours if one.tags.get(OPERATION) == name]
        pending = [one for one in ours if one.state == "pending"]
        return next(iter([*same, *pending]), None)

    def _authored(self, snapshots: Iterable[Snapshot]) -> list[Snapshot]:
        return [one for one in snapshots if aws_records.is_authored(one, self._server_id)]

    async def _some_snapshots(self, ids: Sequence[str]) -> list[Snapshot]:
        return await self._list_snapshots([{"Name": "snapshot-id", "Values": ids}])

    async def _find_snapshot(self, id: str) -> Snapshot | None:
        async with asking(f"read {id}", GONE):
            answer = await self._ec2.describe_snapshots(SnapshotIds=[id])
            return next(iter(_read(answer["Snapshots"])), None)
        return None

    async def _list_snapshots(self, filters: Sequence[FilterTypeDef]) -> list[Snapshot]:
        async with asking("list snapshots"):
            pages = self._ec2.get_paginator("describe_snapshots").paginate(
                OwnerIds=["self"], Filters=filters, PaginationConfig={"PageSize": PAGE}
            )
            return [snapshot async for page in pages for snapshot in _read(page["Snapshots"])]


def _read(entries: Iterable[SnapshotTypeDef]) -> list[Snapshot]:
    return [snapshot for snapshot in map(aws_records.snapshot_of, entries) if snapshot is not None]
