"""Disks end to end: a daemon, a real API server with its volume controllers, AWS simulated by moto;
the test sets the states of pods."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes.test_dev_servers import IMAGE, PODS, DevServerSite, a_github
from tests.support.fakes.aws import REGION, FakeAws, running_moto, serving_aws
from tests.support.fakes.github import ED25519
from tests.support.harness.controlplane.api import Manifest
from tests.support.harness.controlplane.plane import ControlPlane
from tests.support.harness.daemon import wait
from tests.support.harness.database import TestServer
from tests.support.harness.stacks import on_kubernetes

pytestmark = pytest.mark.long

CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_EC2_METADATA_DISABLED": "true",
}  # fmt: skip
VOLUMES = "/api/v1/persistentvolumes"


class DiskSite(DevServerSite):
    aws: FakeAws

    def create(self, name: str = "main") -> None:
        assert "name" in self.call("POST", "/v1/disks", {"name": name})

    def disk(self, name: str = "main") -> dict[str, Any]:
        return self.call("GET", f"/v1/disks/{name}")

    def until_disk(self, state: str, name: str = "main") -> dict[str, Any]:
        def reached() -> dict[str, Any] | None:
            disk = self.disk(name)
            return disk if disk.get("state") == state else None

        return wait(reached, lambda: f"{self.disk(name)}{self.stack.log()}")

    def handle(self, pod: Manifest) -> str:
        """The cloud's volume that a pod has as its home."""
        [claim] = [
            volume["persistentVolumeClaim"]["claimName"]
            for volume in pod["spec"]["volumes"]
            if volume.get("persistentVolumeClaim", {}).get("claimName", "").startswith("odc-volume")
        ]
        found = self.api.get(f"/api/v1/namespaces/gpu-dev/persistentvolumeclaims/{claim}")["spec"][
            "volumeName"
        ]
        return self.api.get(f"{VOLUMES}/{found}")["spec"]["csi"]["volumeHandle"]

    def home(self, pod: Manifest) -> Path:
        folder = self.aws.ebs.folder
        assert folder is not None
        return folder / self.handle(pod)

    def with_disk(self, **fields: Any) -> tuple[int, Manifest]:
        """An active reservation with disk main, and its pod."""
        job_id = self.reserve(disk="main", **fields)
        pod = self.pod(job_id)
        self.run(pod)
        self.until(job_id, "active")
        return job_id, pod

    def ours(self, kind: str) -> list[dict[str, Any]]:
        """Volumes or Snapshots of the cloud."""
        tagged = [{"Name": "tag:ManagedBy", "Values": ["odc"]}]
        return getattr(self.aws.ec2, f"describe_{kind.lower()}")(Filters=tagged)[kind]

    def settled(self) -> None:
        """Only snapshots are left."""
        wait(lambda: not self.ours("Volumes"), lambda: f"{self.ours('Volumes')}{self.stack.log()}")

        def left() -> list[dict[str, Any]]:
            return [one for one in self.api.items(VOLUMES) if "odc" in one["metadata"]["name"]]

        wait(lambda: not left(), lambda: f"{left()}{self.stack.log()}")


@pytest.fixture(scope="module")
def moto_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with running_moto(tmp_path_factory.mktemp("moto")) as port:
        yield port


@pytest.fixture
def site(
    shared_plane: ControlPlane, postgres_server: TestServer, nodes: Callable[..., list[str]],
    installed: object, open_folder: Path, moto_port: int, tmp_path: Path,
) -> Iterator[DiskSite]:  # fmt: skip
    """Nodes in two zones; pods stay as they are until the test changes them."""
    names = nodes(h100=17)
    dsn = postgres_server.clone()
    template = open_folder / "template.yaml"
    template.write_text("annotations: {test.odc.dev/waiting: ContainerCreating}\n")
    folder = tmp_path / "bytes"
    folder.mkdir()
    try:
        kubeconfig = shared_plane.account_kubeconfig("gpu-controlplane", "odcd")
        with (
            serving_aws(moto_port, folder) as aws,
            a_github(ED25519) as url,
            on_kubernetes(
                dsn, kubeconfig, names, ODC_GITHUB_URL=url, ODC_DEV_IMAGE=IMAGE,
                ODC_POD_TEMPLATE=str(template), ODC_AWS_REGION=REGION, ODC_AWS_ENDPOINT=aws.url,
                ODC_DISK_GIB="10", **CREDENTIALS,
            ) as stack,
        ):  # fmt: skip
            site = DiskSite(stack, shared_plane.api)
            site.aws = aws
            yield site
            aws.heal()
            aws.ebs.release()
            stack("cancel", "--all", check=False)
            wait(lambda: not stack.json("queue")["jobs"], stack.log)
    finally:
        postgres_server.drop(dsn)


@pytest.fixture
def open_folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder)
        made.chmod(0o755)
        yield made


def zone_of(site: DiskSite, pod: Manifest) -> str:
    node = site.api.get(f"/api/v1/nodes/{pod['spec']['nodeName']}")
    return node["metadata"]["labels"]["topology.kubernetes.io/zone"]


def test_a_home_is_restored_in_another_zone(site: DiskSite) -> None:
    """STO-01, STO-04, STO-05, SCH-08, BUG-31: its lineage by ids, its bytes, its volume's zone."""
    site.create()
    first, pod = site.with_disk()
    zone = zone_of(site, pod)
    (site.home(pod) / "thesis.txt").write_text("chapter 1")
    [volume] = site.ours("Volumes")
    assert (volume["AvailabilityZone"], volume["VolumeId"]) == (zone, site.handle(pod))
    site.stack("cancel", str(first))
    disk = site.until_disk("available")
    assert disk["snapshot_count"] == 1
    site.settled()
    [snapshot] = site.ours("Snapshots")
    assert (snapshot["VolumeId"], snapshot["SnapshotId"]) == (
        volume["VolumeId"], disk["last_snapshot_id"],
    )  # fmt: skip

    for node in site.stack.json("nodes")["nodes"]:
        if node["zone"] == zone:
            site.api.patch(f"/api/v1/nodes/{node['name']}", {"spec": {"unschedulable": True}})
    wait(
        lambda: all(
            "DRAIN" in node["state"]
            for node in site.stack.json("nodes")["nodes"]
            if node["zone"] == zone
        ),
        site.stack.log,
    )
    _second, pod = site.with_disk()
    assert zone_of(site, pod) != zone
    assert (site.home(pod) / "thesis.txt").read_text() == "chapter 1"
    [volume] = site.ours("Volumes")
    assert volume["SnapshotId"] == snapshot["SnapshotId"]
    assert volume["AvailabilityZone"] == zone_of(site, pod)


def test_pods_and_volume_are_created_concurrently(site: DiskSite) -> None:
    """BUG-38, LIF-16: the pod is there while the cloud makes the volume, and says so."""
    site.create()
    site.aws.ebs.creating_polls = float("inf")
    job_id = site.reserve(disk="main")
    wait(lambda: site.pods(job_id), site.stack.log)
    reservation = site.until_matches(job_id, lambda reservation: reservation["phase"] == "disk")
    assert 'disk "main" is being created' in reservation["message"]
    assert site.pods(job_id)[0]["spec"].get("nodeName") is None
    site.aws.ebs.creating_polls = 0
    site.aws.ebs.release()
    site.run(site.pod(job_id))
    reservation = site.until(job_id, "active")
    assert "disk" in [one["phase"] for one in reservation["phases"]]


def test_the_next_reservation_waits_for_the_disk_and_its_snapshot(site: DiskSite) -> None:
    """STO-03, STO-06, STO-20, SCH-22."""
    site.create()
    first, _pod = site.with_disk()
    second = site.reserve(disk="main")
    reservation = site.until_matches(
        second, lambda reservation: reservation["reason"] == "DiskBusy"
    )
    assert (reservation["status"], reservation["node_names"]) == ("queued", [])
    assert f"in use by reservation {first}" in site.stack("why", str(second))
    site.aws.ebs.pending_polls = float("inf")
    site.stack("cancel", str(first))
    site.until_matches(second, lambda reservation: reservation["reason"] == "SnapshotPending")
    assert "is being created" in site.stack("why", str(second))
    site.aws.ebs.pending_polls = 0
    site.aws.ebs.release()
    site.run(site.pod(second))
    site.until(second, "active")


def test_an_unavailable_named_disk_is_never_replaced_by_a_temporary_home(site: DiskSite) -> None:
    """STO-11, BUG-09."""
    site.create()
    site.aws.fail("CreateVolume", "refuse", times=100, code="VolumeLimitExceeded")
    job_id = site.reserve(disk="main")
    refused = 'disk "main" cannot be prepared'
    reservation = site.until_matches(
        job_id, lambda reservation: refused in str(reservation["history"])
    )
    assert "VolumeLimitExceeded" in str(reservation["history"])
    assert reservation["launched_at"] is None
    assert not any(pod["spec"].get("nodeName") for pod in site.pods(job_id))


@pytest.mark.parametrize("moment", ["creating", "active", "pending", "deleting"])
def test_a_daemon_killed_between_disk_steps_continues(site: DiskSite, moment: str) -> None:
    """BUG-06, BUG-23, BUG-24, BUG-37: no lost disk, no second holder, no orphan, no ghost."""
    site.create()
    if moment == "creating":
        site.aws.fail("CreateVolume", "hang", times=1)
        job_id = site.reserve(disk="main")
        wait(lambda: site.aws.count("CreateVolume"), site.stack.log)
        site.stack.kill(signal.SIGKILL)
        site.stack.start()
        pod = site.pod(job_id)
        site.run(pod)
        site.until(job_id, "active")
    else:
        job_id, pod = site.with_disk()
    (site.home(pod) / "work").write_text("done")
    if moment == "active":
        site.stack.kill(signal.SIGKILL)
        site.stack.start()
        assert site.show(job_id)["status"] == "active"
    if moment == "pending":
        site.aws.ebs.pending_polls = float("inf")
    if moment == "deleting":
        site.aws.fail("DeleteVolume", "error", times=float("inf"))
    site.stack("cancel", str(job_id))
    site.until(job_id, "cancelled")
    if moment == "pending":
        wait(lambda: site.aws.count("CreateSnapshot"), site.stack.log)
        site.stack.kill(signal.SIGKILL)
        site.aws.ebs.pending_polls = 0
        site.aws.ebs.release()
        site.stack.start()
    if moment == "deleting":
        wait(lambda: site.aws.count("DeleteVolume"), site.stack.log)
        site.stack.kill(signal.SIGKILL)
        site.aws.heal()
        site.stack.start()
    disk = site.until_disk("available")
    assert (disk["reservation_id"], disk["snapshot_count"]) == (None, 1)
    site.settled()
    assert len(site.ours("Snapshots")) == 1
    assert site.show(job_id)["status"] == "cancelled"
    _after, pod = site.with_disk()
    assert (site.home(pod) / "work").read_text() == "done"


def test_an_evicted_pods_disk_is_saved(site: DiskSite) -> None:
    """STO-22, LIF-12, LIF-13."""
    site.create()
    job_id, pod = site.with_disk()
    (site.home(pod) / "work").write_text("done")
    site.api.delete(f"{PODS}/{pod['metadata']['name']}", grace_s=0)
    site.until(job_id, "failed")
    site.until_disk("available")
    site.settled()
    _after, pod = site.with_disk()
    assert (site.home(pod) / "work").read_text() == "done"


def test_a_slow_cleanup_does_not_delay_the_expiry_of_others(site: DiskSite) -> None:
    """EXP-11, EXP-12, BUG-07: its status changes first; slow calls to AWS delay nothing else."""
    site.create()
    first, _pod = site.with_disk()
    second = site.active()
    site.aws.fail("*", "hang", times=float("inf"))
    site.stack("cancel", str(first))
    site.until(first, "cancelled")
    wait(lambda: not site.pods(first), site.stack.log)
    site.stack.sql(
        "update odc.reservation set expires_at = now() + interval '1 second', "
        f"launched_at = now() - interval '1 hour' where job_id = {second}",
        f"update odc.running set ends_at = now() + interval '2 seconds' where job_id = {second}",
        f"update odc.allocation set ends_at = now() + interval '2 seconds' where job_id = {second}",
    )
    begin = time.monotonic()
    site.until(second, "expired")
    wait(lambda: not site.pods(second), site.stack.log)
    assert time.monotonic() - begin < 28, "an answer of AWS is waited for 30 s"
    assert site.disk()["state"] == "backing-up"
    site.aws.heal()


def test_a_daemon_that_was_down_at_an_expiry_ends_the_reservation_after_its_start(
    site: DiskSite,
) -> None:
    """EXP-10, BUG-37: no part of it was in the daemon's memory; written data is saved."""
    site.create()
    job_id, pod = site.with_disk(hours=1)
    (site.home(pod) / "work").write_text("done")
    site.stack.kill(signal.SIGKILL)
    site.stack.sql(
        "update odc.reservation set expires_at = now() - interval '2 seconds', "
        "launched_at = now() - interval '1 hour'",
        "update odc.running set ends_at = now() - interval '1 second'",
        "update odc.allocation set ends_at = now() - interval '1 second'",
    )
    assert site.pods(job_id), "no daemon was running to end it"
    site.stack.start()
    assert site.until(job_id, "expired")["failure_reason"] is None
    assert site.until_disk("available")["snapshot_count"] == 1
    site.settled()


def test_a_confirmed_extension_survives_a_killed_daemon(site: DiskSite) -> None:
    """EXP-05: kill -9 right after the answer."""
    job_id = site.active(hours=1)
    extended = site.call("POST", f"/v1/reservations/{job_id}/extend", {"hours": 2})
    site.stack.kill(signal.SIGKILL)
    site.stack.start()
    kept = site.show(job_id)
    assert (kept["status"], kept["expires_at"]) == ("active", extended["expires_at"])
    assert (kept["extensions"], kept["warnings"]) == (1, [])
    refused = site.call("POST", f"/v1/reservations/{job_id}/extend", {"hours": 2})
    assert refused["code"] == "OD012"
