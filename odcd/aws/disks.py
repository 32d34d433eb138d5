"""Disks at AWS: EBS volumes and snapshots, and access points of one EFS file system."""

from __future__ import annotations

from odcd.aws.efs import AccessPoints
from odcd.aws.snapshots import Snapshots
from odcd.aws.volumes import Volumes
from odcd.disks.cloud import Snapshot, Volume


class Aws(Volumes, Snapshots, AccessPoints):
    """Implements odcd.disks.cloud.Cloud."""

    async def list_tagged(self, key: str) -> tuple[list[Volume], list[Snapshot]]:
        # Snapshots last: gpu-dev deletes a volume once its snapshot exists.
        volumes = await self.list_tagged_volumes(key)
        return volumes, await self.list_tagged_snapshots(key)
