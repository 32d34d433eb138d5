"""Disks at AWS: EBS volumes and snapshots, and access points of one EFS file system."""

from __future__ import annotations

from odcd.aws.efs import AccessPoints
from odcd.aws.snapshots import Snapshots
from odcd.aws.volumes import Volumes


class Aws(Volumes, Snapshots, AccessPoints):
    """Implements odcd.disks.cloud.Cloud."""
