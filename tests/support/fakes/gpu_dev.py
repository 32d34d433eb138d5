"""gpu-dev in an AWS account: the volumes and snapshots that it makes, with its tags."""

from __future__ import annotations

import itertools
from typing import Any

from tests.support.fakes.aws import ZONES, FakeAws


class GpuDev:
    def __init__(self, fake: FakeAws) -> None:
        self._fake = fake
        self._ec2 = fake.ec2
        self._minutes = itertools.count()

    def volume(
        self, user: str = "alice", disk: str = "main", *, word: str = "", size_gib: int = 20,
        zone: str = ZONES[0], **tags: str,
    ) -> str:  # fmt: skip
        """word: the name of a file on it."""
        made = self._ec2.create_volume(
            AvailabilityZone=zone, Size=size_gib, Encrypted=True,
            TagSpecifications=_tags("volume", user, disk, {"ManagedBy": "gpu-dev-cli", **tags}),
        )["VolumeId"]  # fmt: skip
        self._note_time(made)
        if self._fake.ebs.folder is not None:
            self._fake.ebs.path(made).mkdir()
            if word:
                (self._fake.ebs.path(made) / word).touch()
        return made

    def snapshot(self, volume: str, user: str = "alice", disk: str = "main", **tags: str) -> str:
        made = self._ec2.create_snapshot(
            VolumeId=volume,
            TagSpecifications=_tags("snapshot", user, disk, {"SnapshotType": "shutdown", **tags}),
        )["SnapshotId"]
        self._note_time(made)
        self._fake.ebs.keep_copy(volume, made)
        return made

    def saved(self, user: str = "alice", disk: str = "main", *, word: str = "", **tags: str) -> str:
        """The snapshot of a disk that was used and put away: its volume is gone."""
        volume = self.volume(user, disk, word=word)
        made = self.snapshot(volume, user, disk, **tags)
        self._ec2.delete_volume(VolumeId=volume)
        return made

    def _note_time(self, id: str) -> None:
        """Each is a minute newer than the one before."""
        self._fake.ebs.times[id] = f"2026-01-01T00:{next(self._minutes):02}:00.000Z"

    def tags(self, id: str) -> dict[str, str]:
        found = self._ec2.describe_tags(Filters=[{"Name": "resource-id", "Values": [id]}])
        return {tag["Key"]: tag["Value"] for tag in found["Tags"]}


def _tags(kind: str, user: str, disk: str, more: dict[str, str]) -> list[dict[str, Any]]:
    tags = {"gpu-dev-user": user, "disk_name": disk, **more}
    return [
        {
            "ResourceType": kind,
            "Tags": [{"Key": key, "Value": value} for key, value in tags.items() if value],
        }
    ]
