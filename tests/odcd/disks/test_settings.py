"""The daemon's settings for disks."""

from __future__ import annotations

import pytest

from odcd.disks.settings import DiskSettings, read_disks
from odcd.errors import BadRequest


def test_without_a_region_there_are_no_disks() -> None:
    assert read_disks({"ODC_AWS_REGION": ""}) == DiskSettings()
    assert DiskSettings().aws_region is None


def test_disk_settings_are_read_from_the_environment() -> None:
    """STO-02: the documented size is the default; others are configured."""
    settings = read_disks({
        "ODC_AWS_REGION": "us-east-2",
        "ODC_AWS_ENDPOINT": "http://127.0.0.1:5000",
        "ODC_EFS_ID": "fs-0123abcd",
        "ODC_DISK_GIB": "1024",
        "ODC_DISK_IOPS": "16000",
        "ODC_DISK_MBPS": "1000",
        "ODC_DISK_KMS_KEY": "arn:aws:kms:us-east-2:111122223333:key/1234",
    })  # fmt: skip
    assert settings == DiskSettings(
        aws_region="us-east-2",
        aws_endpoint="http://127.0.0.1:5000",
        efs_id="fs-0123abcd",
        disk_gib=1024,
        disk_iops=16_000,
        disk_mbps=1000,
        disk_kms_key="arn:aws:kms:us-east-2:111122223333:key/1234",
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ODC_AWS_REGION", "Ohio"),
        ("ODC_AWS_ENDPOINT", "ftp://here"),
        ("ODC_EFS_ID", "vol-0123abcd"),
        ("ODC_DISK_GIB", "0"),
        ("ODC_DISK_IOPS", "2999"),
        ("ODC_DISK_MBPS", "fast"),
        ("ODC_DISK_KMS_KEY", "a key"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(name: str, text: str) -> None:
    with pytest.raises(BadRequest, match=name):
        read_disks({name: text})
