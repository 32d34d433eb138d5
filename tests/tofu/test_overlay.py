"""From the outputs of an environment to an overlay that kubectl applies without an edit."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from odcd.disks.settings import read_disks
from odcd.settings import read_settings
from tests.support.builders.manifests import FOLDER, named, render
from tests.support.harness.arguments import read_arguments
from tests.support.harness.controlplane import build
from tests.support.harness.controlplane.build import NoBinaries
from tests.tofu.test_files import tool

OVERLAY = tool("overlay")
BLOCK = tool("block")
VALUES: dict[str, Any] = {
    "name": "odc", "region": "us-east-2", "url": "https://odc.example.org",
    "host": "odc.example.org", "node_port": 30070,
    "balancer_cidrs": ["10.0.0.0/20", "10.0.16.0/20"], "vpc_cidr": "10.0.0.0/16",
    "odcd_role_arn": "arn:aws:iam::111122223333:role/odc-odcd",
    "backup_role_arn": "arn:aws:iam::111122223333:role/odc-backup",
    "database_kind": "cloudnative-pg", "backup_bucket": "odc-database-111122223333",
    "backup_days": 30,
    "disks_key_arn": "arn:aws:kms:us-east-2:111122223333:key/1-2",
    "disk_iops": 16000, "disk_mib_s": 1000, "file_system_id": "fs-0123456789abcdef0",
    "ccache_access_point_id": "fsap-0123456789abcdef0", "history_bucket": "odc-history",
    "keep_jobs_days": 90,
    "fence": "terminate", "elastic": True, "efa_instance_types": ["p5.48xlarge", "p5e.48xlarge"],
    "image": "111122223333.dkr.ecr.us-east-2.amazonaws.com/odc/odcd", "image_tag": "0.1.0",
    "operators": ["ann"], "aws_roles": ["arn:aws:iam::111122223333:role/Gpu_*"],
    "job_image": None, "dev_image": None, "monitoring": False, "shared_ccache": True,
}  # fmt: skip
SMALL: dict[str, Any] = VALUES | {
    "url": None, "host": None, "node_port": None, "database_kind": "rds", "backup_bucket": None,
    "backup_role_arn": None, "efa_instance_types": [], "history_bucket": None,
    "keep_jobs_days": None, "fence": "off", "elastic": False,
    "image": None, "image_tag": None, "operators": [], "aws_roles": [], "shared_ccache": False,
}  # fmt: skip


@pytest.fixture
def kubectl() -> Path:
    try:
        return build.kubectl()
    except NoBinaries as why:
        pytest.skip(str(why))


def rendered(kubectl: Path, values: dict[str, Any], folder: Path) -> list[dict[str, Any]]:
    shutil.copytree(FOLDER, folder / "k8s")
    OVERLAY.write(values, folder / "k8s/overlays/aws-test")
    return render(kubectl, folder / "k8s/overlays/aws-test")


def base_settings() -> dict[str, str]:
    text = (FOLDER / "base/settings.env").read_text("utf-8")
    return dict(line.split("=", 1) for line in text.split())


@pytest.mark.parametrize("values", [VALUES, SMALL], ids=["all", "small"])
def test_odcd_accepts_the_settings(values: dict[str, Any]) -> None:
    arguments = read_arguments(
        ["serve", "--executor", "kubernetes", "--listen", "0.0.0.0:7070", "--log-format", "json"]
    )
    own = {"ODC_DSN": "postgresql://odc@odc-db-rw/odc", "ODC_HOME": "/var/lib/odc/home"}
    read = read_settings(arguments, base_settings() | OVERLAY.settings(values) | own)
    assert read.executor == "kubernetes"
    assert read_disks(OVERLAY.settings(values)).aws_region == "us-east-2"
    assert read_disks(OVERLAY.settings(values)).disk_iops == 16000


def test_hosts_are_those_of_the_base_and_one_more() -> None:
    expected = f"{base_settings()['ODC_HOSTS']},odc.example.org"
    assert OVERLAY.settings(VALUES)["ODC_HOSTS"] == expected


def test_written_files_are_yaml_and_written_again_the_same(tmp_path: Path) -> None:
    OVERLAY.write(VALUES, tmp_path)
    first = {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()}
    for name in ("kustomization.yaml", "patches.yaml", "aws.yaml"):
        assert all(yaml.safe_load_all(first[name])), name
    OVERLAY.write(VALUES, tmp_path)
    assert {path.name: path.read_text("utf-8") for path in tmp_path.iterdir()} == first


@pytest.mark.long
def test_the_overlay_renders_with_everything(kubectl: Path, tmp_path: Path) -> None:
    """INF-15, INF-16, INF-18: PostgreSQL with backups, the load balancer, a role for odcd."""
    manifests = rendered(kubectl, VALUES, tmp_path)
    config = named(manifests, "ConfigMap", next(
        m["metadata"]["name"] for m in manifests
        if m["kind"] == "ConfigMap" and m["metadata"]["name"].startswith("odcd")
    ))["data"]  # fmt: skip
    assert config["ODC_URL"] == "https://odc.example.org"
    assert config["ODC_BUILD_REGISTRY"], "what other components set stays"
    account = named(manifests, "ServiceAccount", "odcd", "gpu-controlplane")
    assert (
        account["metadata"]["annotations"]["eks.amazonaws.com/role-arn"] == VALUES["odcd_role_arn"]
    )
    service = named(manifests, "Service", "odcd")["spec"]
    assert (service["type"], service["externalTrafficPolicy"]) == ("NodePort", "Local")
    assert service["ports"][0]["nodePort"] == 30070
    assert config["ODC_ELASTIC_CLUSTER"] == "odc"
    assert named(manifests, "ClusterRole", "odcd-fence")
    database = named(manifests, "Cluster", "odc-db")["spec"]
    assert database["plugins"][0]["parameters"] == {"barmanObjectName": "odc-db"}
    assert database["instances"] == 3
    network = named(manifests, "NetworkPolicy", "ingress-to-odcd")["spec"]
    assert network["ingress"][0]["from"] == [
        {"ipBlock": {"cidr": c}} for c in VALUES["balancer_cidrs"]
    ]
    efa = named(manifests, "DaemonSet", "aws-efa-k8s-device-plugin")
    assert "p5e.48xlarge" in json.dumps(efa)
    deployment = named(manifests, "Deployment", "odcd")
    image = deployment["spec"]["template"]["spec"]["containers"][0]["image"]
    assert image == f"{VALUES['image']}:0.1.0"


@pytest.mark.long
def test_the_overlay_renders_with_rds_and_without_efa(kubectl: Path, tmp_path: Path) -> None:
    manifests = rendered(kubectl, SMALL, tmp_path)
    kinds = {(m["kind"], m["metadata"]["name"]) for m in manifests}
    assert ("Cluster", "odc-db") not in kinds
    assert ("NetworkPolicy", "postgresql") not in kinds
    assert ("DaemonSet", "aws-efa-k8s-device-plugin") not in kinds
    assert ("NetworkPolicy", "odcd-to-rds") in kinds
    assert named(manifests, "Service", "odcd")["spec"].get("type", "ClusterIP") == "ClusterIP"


def test_the_entry_of_a_capacity_block() -> None:
    """INF-07: zone, number, start and end come from the reservation."""
    block = {
        "CapacityReservationId": "cr-0123456789abcdef0", "ReservationType": "capacity-block",
        "InstanceType": "p5.48xlarge", "AvailabilityZone": "us-east-2b", "TotalInstanceCount": 2,
        "StartDate": "2026-12-01T11:30:00+00:00", "EndDate": "2026-12-08T11:30:00+00:00",
    }  # fmt: skip
    types = BLOCK.TYPES.read_text("utf-8")
    assert BLOCK.entry({"CapacityReservations": [block]}, types) == (
        'h100-block = { type = "h100", id = "cr-0123456789abcdef0", zone = "us-east-2b",'
        ' instances = 2, starts_at = "2026-12-01T11:30:00Z", ends_at = "2026-12-08T11:30:00Z" }'
    )
    for wrong in (
        [], [block | {"ReservationType": "default"}], [block | {"InstanceType": "p9.metal"}],
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"capacity|type"):
            BLOCK.entry({"CapacityReservations": wrong}, types)
