"""Access points of one EFS file system: one folder per user instead of one file system per user."""

from __future__ import annotations

from collections.abc import Mapping

from botocore.exceptions import ClientError

from odcd.aws import records as aws_records
from odcd.aws.errors import asking, code_of
from odcd.aws.link import Link
from odcd.disks.cloud import AccessPoint, CloudBusy, CloudRefused

PAGE = 100
MODE = "0700"


class AccessPoints(Link):
    async def create_access_point(
        self, operation: str, *, uid: int, gid: int, path: str, tags: Mapping[str, str]
    ) -> AccessPoint:
        """See odcd.disks.cloud.Cloud, also for the other methods."""
        file_system = self._settings.efs_id
        if file_system is None:
            raise CloudRefused("NoFileSystem", "there is no shared storage: ODC_EFS_ID is not set")
        there = [
            one
            for one in await self.access_points()
            if one.path == path and one.state in ("creating", "available")
        ]
        if there:
            return min(there, key=lambda one: (one.state, one.id))
        all_tags = {**tags, **aws_records.own_tags(self._server_id, operation)}
        async with asking("create an access point"):
            try:
                answer = await self._efs_once.create_access_point(
                    ClientToken=aws_records.token(self._server_id, operation),
                    FileSystemId=file_system,
                    PosixUser={"Uid": uid, "Gid": gid},
                    RootDirectory={
                        "Path": path,
                        "CreationInfo": {"OwnerUid": uid, "OwnerGid": gid, "Permissions": MODE},
                    },
                    Tags=aws_records.tag_list(all_tags),
                )
            except ClientError as error:
                if code_of(error) != "AccessPointAlreadyExists":
                    raise
                raise CloudBusy("AWS does not list an access point yet", sent=True) from error
        return aws_records.access_point_of(answer)

    async def access_points(self) -> list[AccessPoint]:
        if self._settings.efs_id is None:
            return []
        async with asking("list access points"):
            pages = self._efs.get_paginator("describe_access_points").paginate(
                FileSystemId=self._settings.efs_id, PaginationConfig={"PageSize": PAGE}
            )
            found = [
                aws_records.access_point_of(entry)
                async for page in pages
                for entry in page["AccessPoints"]
            ]
        return [one for one in found if aws_records.is_of(one.tags, self._server_id)]
