"""Dev servers with disks, from reserve to reserve: real daemon, real containers, AWS by moto."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kubernetes.test_dev_server_inside import Inside
from tests.kubernetes.test_dev_servers import PODS, DevServerSite, a_github
from tests.support.fakes.aws import REGION, FakeAws, running_moto, serving_aws, set_credentials
from tests.support.harness.controlplane import openssh
from tests.support.harness.controlplane.plane import ControlPlane
from tests.support.harness.controlplane.processes import ProcessNodes
from tests.support.harness.daemon import wait
from tests.support.harness.database import TestServer
from tests.support.harness.stacks import on_kubernetes

pytestmark = pytest.mark.long

FOREVER = float("inf")


class DiskSite(DevServerSite):
    fake: FakeAws
    folder: Path
    names: list[str]

    def disk(self) -> dict[str, Any]:
        return self.call("GET", "/v1/disks/main")

    def until_disk(self, **expected: object) -> dict[str, Any]:
        def reached() -> dict[str, Any] | None:
            disk = self.disk()
            return disk if expected.items() <= disk.items() else None

        return wait(reached, lambda: f"{self.disk()}{self.stack.log()}")

    def inside(self, job_id: int) -> Inside:
        self.until(job_id, "active")
        return Inside(self, job_id, self.folder)

    def node_of(self, job_id: int) -> str:
        [pod] = self.pods(job_id)
        return pod["spec"]["nodeName"]

    def close(self, node: str, *, closed: bool = True) -> None:
        self.api.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": closed}})
        wait(
            lambda: (
                (self.stack.json("nodes")["nodes"][self.names.index(node)]["state"] != "IDLE")
                == closed
            ),
            self.stack.log,
        )

    def end(self, job_id: int) -> None:
        self.stack("cancel", str(job_id))
        wait(lambda: not self.pods(job_id), self.stack.log)

    def ours(self) -> tuple[list[str], list[str]]:
        """Ids of all volumes and snapshots of odc that AWS has."""
        mine = [{"Name": "tag:ManagedBy", "Values": ["odc"]}]
        volumes = self.fake.ec2.describe_volumes(Filters=mine)["Volumes"]
        snapshots = self.fake.ec2.describe_snapshots(Filters=mine)["Snapshots"]
        return [v["VolumeId"] for v in volumes], [s["SnapshotId"] for s in snapshots]


@pytest.fixture
def site(
    shared_plane: ControlPlane, postgres_server: TestServer, zoned_nodes: ProcessNodes,
    installed: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> Iterator[DiskSite]:  # fmt: skip
    if why := openssh.why_not():
        pytest.skip(why)
    set_credentials(monkeypatch)
    made = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", tmp_path / "key"]
    subprocess.run(made, check=True)
    key = (tmp_path / "key.pub").read_text().strip()
    dsn = postgres_server.clone()
    kubeconfig = shared_plane.account_kubeconfig("gpu-controlplane", "odcd")
    try:
        with (
            a_github(key) as url,
            running_moto(tmp_path) as port,
            serving_aws(port, zoned_nodes.volumes) as fake,
            on_kubernetes(
                dsn, kubeconfig, zoned_nodes.names, ODC_GITHUB_URL=url,
                ODC_DEV_IMAGE="x/dev:1", ODC_AWS_REGION=REGION, ODC_AWS_ENDPOINT=fake.url,
                ODC_EFS_ID=fake.make_file_system(),
            ) as stack,
        ):  # fmt: skip
            site = DiskSite(stack, shared_plane.api)
            site.fake, site.folder, site.names = fake, tmp_path, zoned_nodes.names
            yield site
            fake.heal()
            fake.ebs.pending_polls = 0
            fake.ebs.release()
            stack("cancel", "--all", check=False)
            wait(lambda: not shared_plane.api.items(PODS), stack.log)
            wait(lambda: not site.ours()[0], lambda: f"{site.ours()}{stack.log()}")
    finally:
        for node in zoned_nodes.names:
            shared_plane.api.patch(f"/api/v1/nodes/{node}", {"spec": {"unschedulable": False}})
        postgres_server.drop(dsn)


def test_files_of_a_home_are_restored_in_another_zone(site: DiskSite) -> None:
    """STO-01, STO-04, STO-05, STO-06, STO-17, STO-23, STO-27: written, saved, waited for, read."""
    site.call("POST", "/v1/disks", {"name": "main"})
    site.fake.ebs.creating_polls = 2
    site.fake.ebs.pending_polls = FOREVER
    job_id = site.reserve(hours=1, disk="main")
    inside = site.inside(job_id)
    first_node = site.node_of(job_id)
    inside.ssh("echo 42 >thesis; mkdir -p a/b/c; echo shared >/shared-personal/notes")
    disk = site.until_disk(state="in-use", reservation_id=job_id)
    first_volume = disk["volume_id"]
    assert f"real-{disk['zone']}" == first_node
    site.end(job_id)
    site.until_disk(state="backing-up", reservation_id=None)
    wait(lambda: site.fake.count("CreateSnapshot"), site.stack.log)
    assert site.fake.count("CreateSnapshot") == 1

    again = site.reserve(hours=1, disk="main")
    wait(lambda: "snapshot" in str(site.stack.json("why", str(again)).get("why")), site.stack.log)
    site.close(first_node)
    assert site.ours()[0] == [first_volume], "kept until its snapshot is completed"
    site.fake.ebs.release()
    back = site.inside(again)
    assert site.node_of(again) != first_node
    assert back.ssh("cat thesis /shared-personal/notes; stat -c %U thesis") == "42\nshared\ndev"
    disk = site.until_disk(state="in-use", snapshot_count=1)
    assert disk["volume_id"] != first_volume
    wait(lambda: site.ours()[0] == [disk["volume_id"]], lambda: f"{site.ours()}{site.stack.log()}")
    listed = site.call("GET", "/v1/disks/main/content")
    assert "thesis" in (listed["contents"] or ""), f"{listed}{site.stack.log()}"
    site.close(first_node, closed=False)


@pytest.mark.parametrize(
    "action", ["CreateVolume", "CreateSnapshot", "DeleteVolume", "CreateAccessPoint"]
)
def test_a_daemon_killed_during_a_cloud_call_loses_and_duplicates_nothing(
    site: DiskSite, action: str
) -> None:
    """STO-10, STO-26: every unanswered call is repeated, and its result found."""
    site.call("POST", "/v1/disks", {"name": "main"})
    site.fake.fail(action, "hang")

    def killed() -> None:
        wait(lambda: site.fake.count(action), site.stack.log)
        site.stack.kill()
        site.stack.start()

    job_id = site.reserve(hours=1, disk="main")
    if action in ("CreateVolume", "CreateAccessPoint"):
        killed()
    site.inside(job_id).ssh("echo 42 >thesis")
    assert len(site.ours()[0]) == 1
    site.end(job_id)
    if action in ("CreateSnapshot", "DeleteVolume"):
        killed()
    site.until_disk(state="available", snapshot_count=1)
    wait(lambda: not site.ours()[0], lambda: f"{site.ours()}{site.stack.log()}")
    assert len(site.ours()[1]) == 1
    again = site.reserve(hours=1, disk="main")
    assert site.inside(again).ssh("cat thesis") == "42"
    points = site.fake.efs.describe_access_points()["AccessPoints"]
    assert len(points) == 1
