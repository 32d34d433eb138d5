"""EBS volumes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from odcd.aws import records as aws_records
from odcd.aws.errors import asking, code_of
from odcd.aws.link import Link
from odcd.disks.cloud import OPERATION, CloudBusy, Volume

if TYPE_CHECKING:
    from types_aiobotocore_ec2.type_defs import (
        CreateVolumeRequestTypeDef,
        FilterTypeDef,
        VolumeTypeDef,
    )

PAGE = 500
GONE = "InvalidVolume.NotFound"


class Volumes(Link):
    async def create_volume(
        self,
        operation: str,
        *,
        zone: str,
        size_gib: int,
        snapshot_id: str | None,
        tags: Mapping[str, str],
    ) -> Volume:
        """See odcd.disks.cloud.Cloud, also for the other methods."""
        found = await self._volume_by(operation)
        if found is not None:
            return found
        all_tags = {**tags, **aws_records.own_tags(self._server_id, operation)}
        request: CreateVolumeRequestTypeDef = {
            "ClientToken": aws_records.token(self._server_id, operation),
            "AvailabilityZone": zone,
            "Size": size_gib,
            "VolumeType": "gp3",
            "Iops": self._settings.disk_iops,
            "Throughput": self._settings.disk_mbps,
            "Encrypted": True,
            "TagSpecifications": [
                {"ResourceType": "volume", "Tags": aws_records.tag_list(all_tags)}
            ],
        }
        if self._settings.disk_kms_key is not None:
            request["KmsKeyId"] = self._settings.disk_kms_key
        if snapshot_id is not None:
            request["SnapshotId"] = snapshot_id
        async with asking("create a volume"):
            try:
                answer = await self._ec2_once.create_volume(**request)
            except ClientError as error:
                if code_of(error) != "IdempotentParameterMismatch":
                    raise
                # It was requested before with other parameters, and is not in the lists yet.
                raise CloudBusy("AWS does not show a volume that it created", sent=True) from error
        volume = aws_records.volume_of(answer)
        if volume is None:
            raise CloudBusy("AWS created a volume that is already deleted", sent=True)
        self._note_new(volume.id)
        return volume

    async def volumes(self, ids: Sequence[str]) -> dict[str, Volume]:
        return await self._by_id(ids, self._some_volumes, self._find_volume)

    async def detach_volume(self, id: str, *, force: bool) -> None:
        # IncorrectState: it is not attached.
        async with asking(f"detach {id}", GONE, "IncorrectState", "InvalidAttachment.NotFound"):
            await self._ec2.detach_volume(VolumeId=id, Force=force)

    async def delete_volume(self, id: str) -> None:
        async with asking(f"delete {id}", GONE):
            await self._ec2.delete_volume(VolumeId=id)
        self._new.pop(id, None)

    async def list_volumes(self) -> list[Volume]:
        return await self._list_volumes(self._ours())

    async def list_tagged_volumes(self, key: str) -> list[Volume]:
        return await self._list_volumes([aws_records.key_filter(key)])

    async def _volume_by(self, operation: str) -> Volume | None:
        named = aws_records.tag_filter(OPERATION, operation)
        found = await self._list_volumes([*self._ours(), named])
        return min(found, key=lambda volume: volume.id, default=None)

    async def _some_volumes(self, ids: Sequence[str]) -> list[Volume]:
        return await self._list_volumes([{"Name": "volume-id", "Values": ids}])

    async def _find_volume(self, id: str) -> Volume | None:
        async with asking(f"read {id}", GONE):
            answer = await self._ec2.describe_volumes(VolumeIds=[id])
            return next(iter(_read(answer["Volumes"])), None)
        return None

    async def _list_volumes(self, filters: Sequence[FilterTypeDef]) -> list[Volume]:
        async with asking("list volumes"):
            pages = self._ec2.get_paginator("describe_volumes").paginate(
                Filters=filters, PaginationConfig={"PageSize": PAGE}
            )
            return [volume async for page in pages for volume in _read(page["Volumes"])]


def _read(entries: Iterable[VolumeTypeDef]) -> list[Volume]:
    return [volume for volume in map(aws_records.volume_of, entries) if volume is not None]
