"""The daemon's settings for disks, read at its start; see odcd.settings."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from odcd.errors import BadRequest

_URL = re.compile(r"https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?", re.ASCII)
_REGION = re.compile(r"[a-z]{2}(-[a-z]+)+-[0-9]{1,2}", re.ASCII)
_EFS = re.compile(r"fs-[0-9a-f]{8,40}", re.ASCII)
_KEY = re.compile(r"[A-Za-z0-9:/_-]{1,300}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskSettings:
    aws_region: str | None = None
    """ODC_AWS_REGION. The AWS region of disks' volumes and snapshots, on Kubernetes. Default none:
    there are no disks."""
    aws_endpoint: str | None = None
    """ODC_AWS_ENDPOINT. One address that replaces all AWS endpoints, for tests. Default none: AWS's
    own."""
    efs_id: str | None = None
    """ODC_EFS_ID. The EFS file system with a folder for each user, /shared-personal. Default none:
    there is no such folder."""
    disk_gib: int = 100
    """ODC_DISK_GIB. The size of a new disk in GiB. Default 100."""
    disk_iops: int = 3000
    """ODC_DISK_IOPS. The IOPS of every volume (gp3). Default 3000."""
    disk_mbps: int = 125
    """ODC_DISK_MBPS. The throughput of every volume, in MiB/s. Default 125."""
    disk_kms_key: str | None = None
    """ODC_DISK_KMS_KEY. The KMS key of volumes, by id, alias or ARN; they are always encrypted.
    Default none: the account's own key for EBS."""


def read_disks(environment: Mapping[str, str]) -> DiskSettings:
    """Raises BadRequest, naming the invalid variable. An empty variable is not set."""
    environment = {name: text for name, text in environment.items() if text}
    default = DiskSettings()
    return DiskSettings(
        aws_region=_matched(environment, "ODC_AWS_REGION", _REGION, "a region", "us-east-2"),
        aws_endpoint=_matched(
            environment, "ODC_AWS_ENDPOINT", _URL, "an address", "http://127.0.0.1:5000"
        ),
        efs_id=_matched(
            environment, "ODC_EFS_ID", _EFS, "a file system's id", "fs-0123456789abcdef0"
        ),
        disk_gib=_number(environment, "ODC_DISK_GIB", default.disk_gib, 10, 16_384),
        disk_iops=_number(environment, "ODC_DISK_IOPS", default.disk_iops, 3000, 80_000),
        disk_mbps=_number(environment, "ODC_DISK_MBPS", default.disk_mbps, 125, 2000),
        disk_kms_key=_matched(environment, "ODC_DISK_KMS_KEY", _KEY, "a KMS key", "alias/odc"),
    )


def _matched(
    environment: Mapping[str, str], name: str, form: re.Pattern[str], what: str, example: str
) -> str | None:
    text = environment.get(name)
    if text is not None and not form.fullmatch(text):
        raise BadRequest(f'{name}="{text[:100]}" is not {what}', f"For example {example}.")
    return text


def _number(environment: Mapping[str, str], name: str, default: int, low: int, high: int) -> int:
    text = environment.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and low <= int(text) <= high):
        raise BadRequest(f'{name}="{text[:100]}" is not in its range', f"Give {low} to {high}.")
    return int(text)
