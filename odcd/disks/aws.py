"""Disks at AWS: EBS volumes and snapshots, and access points of one EFS file system."""

from __future__ import annotations

from odcd.disks.aws_efs import AccessPoints
from odcd.disks.aws_snapshots import Snapshots
from odcd.disks.aws_volumes import Volumes


class Aws(Volumes, Snapshots, AccessPoints):
    """Implements odcd.disks.cloud.Cloud."""
