"""A dev server whose home is a disk: what its start program leaves unchanged, and where the data
goes."""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import psutil
import pytest

from odcd.aws.disks import Aws
from odcd.clock import SystemClock
from odcd.disks.settings import DiskSettings
from odcd.executor.kubernetes.claims import Claims, disk_claim, personal_claim
from odcd.executor.kubernetes.cluster import Cluster as Connection
from odcd.executor.kubernetes.contents import Contents
from odcd.executor.kubernetes.dev_server_keys import make_keys
from odcd.executor.kubernetes.dev_server_pods import DevServerStorage
from odcd.executor.kubernetes.inventory import NodeOffer
from odcd.executor.kubernetes.objects import Pod
from odcd.executor.kubernetes.pod_writer import PodWriter
from odcd.executor.kubernetes.pods import PodSettings
from odcd.records.dispatch import DiskUse
from tests.support.builders.dispatches import a_dispatch_of, a_member
from tests.support.fakes.aws import REGION, running_moto, serving_aws, set_credentials
from tests.support.harness.controlplane import openssh
from tests.support.harness.controlplane.children import wait_until
from tests.support.harness.controlplane.plane import ControlPlane
from tests.support.harness.controlplane.processes import ProcessNodes

pytestmark = pytest.mark.long

PODS = "/api/v1/namespaces/gpu-dev/pods"
ZONES = ("us-east-2a", "us-east-2b")
BLANK = "vol-0aaaaaaaaaaaaaaaa"


class Site:
    """Dev servers one after the other, because all containers here share one network, and their
    disks."""

    def __init__(self, plane: ControlPlane, nodes: ProcessNodes, folder: Path) -> None:
        self.api = plane.api
        self.nodes = nodes
        self.folder = folder
        self.keys = make_keys()
        self.storage = DevServerStorage()
        self._config = plane.account_kubeconfig("gpu-controlplane", "odcd")
        self._attempts = 0
        subprocess.run(
            ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", folder / "key"],
            check=True,
        )
        (folder / "known_hosts").write_text(f"odc {self.keys.host_public}\n")

    def ask(self, act: Callable[[Connection], Awaitable[Any]]) -> Any:
        async def once() -> Any:
            cluster = await Connection.connect(self._config)
            try:
                return await act(cluster)
            finally:
                await cluster.close()

        return asyncio.run(once())

    def claims(self, act: Callable[[Claims], Awaitable[Any]]) -> Any:
        return self.ask(lambda cluster: act(Claims(cluster, "gpu-dev")))

    def disk(self, cloud_id: str, row: int, zone: str = ZONES[0]) -> DiskUse:
        self.claims(lambda claims: claims.publish(row, cloud_id, zone, 100))
        return DiskUse(claim=disk_claim(row), name="main", first=row == 1)

    def withdraw(self, row: int) -> None:
        wait_until(lambda: self.claims(lambda claims: claims.withdraw(row)), "it to be withdrawn")

    def boot(self, zone: str = ZONES[0], ask: dict[str, object] | None = None, **more: Any) -> str:
        """The name of the pod, which is ready."""
        self._attempts += 1
        node = self.nodes.names[ZONES.index(zone)]
        member = a_member(node=node, gpu_indexes=(0,), cpus=2, mem_mib=1024, virtual=False)
        lines: list[object] = [(self.folder / "key.pub").read_text().strip()]
        dispatch, texts = a_dispatch_of(
            kind="reservation", members=(member,), job_id=7, attempt=self._attempts,
            user="alice", ask={"ssh_keys": lines, **(ask or {})}, **more,
        )  # fmt: skip
        offers = {node: NodeOffer(gpus=8, efa=0, hugepages_mib=0)}
        settings = PodSettings(dev_image="x/dev:1", storage=self.storage)
        self.ask(
            lambda cluster: PodWriter(cluster, settings).make(
                dispatch, texts, offers, keys=self.keys
            )
        )
        name = f"odc-7-{self._attempts}-0"
        self.api.until(f"{PODS}/{name}", lambda pod: _is_ready(pod))
        return name

    def end(self) -> None:
        for pod in self.api.items(PODS):
            self.api.delete(f"{PODS}/{pod['metadata']['name']}", grace_s=1)
        wait_until(lambda: not self.api.items(PODS), "the pods to go")

    def ssh(self, command: str) -> str:
        options = {
            "Port": "2222", "IdentityFile": str(self.folder / "key"), "IdentitiesOnly": "yes",
            "UserKnownHostsFile": str(self.folder / "known_hosts"), "HostKeyAlias": "odc",
            "BatchMode": "yes", "ConnectTimeout": "60", "LogLevel": "ERROR",
        }  # fmt: skip
        given = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        done = subprocess.run(
            ["ssh", "-F", "none", *given, "dev@127.0.0.1", command], capture_output=True, text=True,
            timeout=120, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout.strip()


def _is_ready(pod: dict[str, Any]) -> bool:
    return any(
        one["type"] == "Ready" and one["status"] == "True"
        for one in pod["status"].get("conditions", [])
    )


@pytest.fixture
def site(
    shared_plane: ControlPlane, installed: object, zoned_nodes: ProcessNodes, tmp_path: Path
) -> Iterator[Site]:
    if why := openssh.why_not():
        pytest.skip(why)
    made = Site(shared_plane, zoned_nodes, tmp_path)
    yield made
    made.end()
    for claim in made.api.items("/api/v1/namespaces/gpu-dev/persistentvolumeclaims"):
        name: str = claim["metadata"]["name"]
        made.api.delete(f"/api/v1/namespaces/gpu-dev/persistentvolumeclaims/{name}")
        made.api.delete(f"/api/v1/persistentvolumes/{name}")
    wait_until(lambda: not made.api.items("/api/v1/persistentvolumes"), "the volumes to go")
    for folder in zoned_nodes.volumes.iterdir():
        subprocess.run(["rm", "-rf", folder], check=True)


def test_a_new_disk_becomes_a_home_once_and_later_boots_leave_it_alone(site: Site) -> None:
    """IMG-05, STO-14: shell files and ownership are set the first time; a user's files are not
    changed later."""
    disk = site.disk(BLANK, 1)
    site.boot(disk=disk)
    home = site.nodes.volumes / BLANK
    skel = Path("/etc/skel/.bashrc").read_text()
    assert site.ssh("stat -c %U:%a /home/dev; stat -c %U .bashrc") == "dev:755\ndev"
    assert site.ssh("cat .bashrc") == skel.strip()
    assert "KEPT: your disk main, which is new" in site.ssh("cat /etc/motd")
    site.ssh("echo mine >.bashrc; rm .profile; mkdir deep && echo work >deep/file; chmod 700 .")
    # Facts that a walk through the disk would change.
    (home / "deep" / "of_root").write_text("x")
    (home / "WARN_EXPIRES_IN_5MIN_7.txt").write_text("of the last reservation")
    (home / "OOM_DETECTED.txt").write_text("of the last reservation")
    site.end()
    site.boot(disk=disk)
    assert site.ssh("cat .bashrc deep/file") == "mine\nwork"
    assert site.ssh("stat -c %U:%a /home/dev; stat -c %U deep/of_root; ls") == "dev:700\nroot\ndeep"
    assert not (home / ".profile").exists()


def test_recreate_env_restores_the_default_shell_files(site: Site) -> None:
    """IMG-05: with --recreate-env, once; the old files are kept beside the new ones."""
    disk = site.disk(BLANK, 2)
    site.boot(disk=disk)
    site.ssh("echo 'exit 1' >.bashrc; echo work >file")
    site.end()
    site.boot(disk=disk, ask={"recreate_env": True})
    skel = Path("/etc/skel/.bashrc").read_text().strip()
    assert site.ssh("cat .bashrc") == skel
    assert site.ssh("cat .bashrc.old file; stat -c %U .bashrc") == "exit 1\nwork\ndev"
    site.ssh("echo mine >.bashrc")
    [pod] = site.api.items(PODS)
    _kill_start()
    site.api.until(
        f"{PODS}/{pod['metadata']['name']}",
        lambda pod: pod["status"]["containerStatuses"][0]["restartCount"] > 0 and _is_ready(pod),
    )
    assert site.ssh("cat .bashrc") == "mine", "a restarted container is not a new boot"


def _kill_start() -> None:
    [first, *_] = sorted(
        process.pid
        for process in psutil.process_iter(["cmdline"])
        if (process.info["cmdline"] or [])[:2] == ["/bin/sh", "/odc/job/start"]
    )
    os.kill(first, 9)


def test_the_contents_of_a_disk_are_listed_in_the_pod_that_mounts_it(site: Site) -> None:
    """STO-17: its size and the tree to depth 3, whatever names are in it."""
    name = site.boot(disk=site.disk(BLANK, 6))
    site.ssh("mkdir -p a/b/c/d; head -c 3000000 /dev/zero >a/big; touch 'x$(id) \nz' .hidden")
    pod = msgspec.convert(site.api.pod("gpu-dev", name), Pod)
    listings: list[tuple[Any, ...]] = []

    async def note(*what: Any) -> None:
        listings.append(what)

    site.ask(lambda cluster: Contents(cluster, note).keep(pod, (7, 1, 0)))
    [(job_id, attempt, text, used_bytes)] = listings
    assert (job_id, attempt) == (7, 1)
    assert used_bytes > 2_900_000
    for name in ("big", "b", "c", "x$(id)", ".hidden"):
        assert name in text
    assert "/d" not in text.replace("/dev", "")


def test_a_disk_keeps_the_uid_of_its_files(site: Site) -> None:
    """STO-14, BUG-27: the uid of dev when the files were written is kept, and the files are not
    walked."""
    home = site.nodes.volumes / BLANK
    home.mkdir(mode=0o755)
    (home / "old").write_text("data\n")
    for path in (home, home / "old"):
        os.chown(path, 1500, 1500)
    disk = site.disk(BLANK, 3)
    site.boot(disk=disk)
    assert site.ssh("id -u; stat -c %U old; cat old; echo new >new; stat -c %u new") == (
        "1500\ndev\ndata\n1500"
    )


def test_shared_storage_and_caches_are_where_users_look(site: Site) -> None:
    """STO-30, STO-34, STO-39: personal files stay; a home without a disk does not."""
    uid = 1081
    site.claims(lambda claims: claims.publish_personal(uid, "fs-0123abcd", "fsap-0123abcd"))
    cache = {
        "csi": {"driver": "efs.csi.aws.com", "volumeHandle": "fs-0123abcd::fsap-0cccccccc"},
        "accessModes": ["ReadWriteMany"], "capacity": {"storage": "1Gi"}, "storageClassName": "",
        "claimRef": {"namespace": "gpu-dev", "name": "ccache"},
    }  # fmt: skip
    meta = {"metadata": {"name": "ccache"}, "apiVersion": "v1"}
    site.api.create({**meta, "kind": "PersistentVolume", "spec": cache})
    site.api.create({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "ccache", "namespace": "gpu-dev"},
        "spec": {
            "accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "", "volumeName": "ccache",
        },
    })  # fmt: skip
    site.storage = DevServerStorage(ccache_claim="ccache")
    site.boot(personal=personal_claim(uid))
    site.ssh("echo mine >/shared-personal/notes; echo work >file; touch /ccache/object")
    environment = dict(line.partition("=")[::2] for line in site.ssh("env").splitlines())
    assert (environment["CCACHE_DIR"], environment["CCACHE_MAXSIZE"]) == ("/ccache_shared", "250G")
    assert environment["XDG_CACHE_HOME"] == "/workspace/.cache"
    assert site.ssh("stat -c %a /ccache_shared; ls /ccache_shared") == "777\nobject"
    motd = site.ssh("cat /etc/motd")
    assert "/home/dev        LOST at the end: this reservation has no disk" in motd
    assert "/shared-personal KEPT" in motd
    site.end()
    site.boot(zone=ZONES[1], personal=personal_claim(uid))
    assert site.ssh("cat /shared-personal/notes; ls") == "mine"


def test_a_disk_keeps_its_data_when_it_moves_to_another_zone(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A volume, its snapshot, and the volume made from it: written in one dev server, read in the
    next one in another zone."""
    set_credentials(monkeypatch)
    with running_moto(tmp_path) as port, serving_aws(port, site.nodes.volumes) as fake:

        def cloud(act: Callable[[Aws], Awaitable[Any]]) -> Any:
            async def once() -> Any:
                settings = DiskSettings(aws_region=REGION, aws_endpoint=fake.url)
                aws = Aws(settings, "lab-1", SystemClock())
                await aws.open()
                try:
                    return await act(aws)
                finally:
                    await aws.close()

            return asyncio.run(once())

        def volume(row: int, zone: str, snapshot: str | None) -> str:
            made = cloud(
                lambda aws: aws.create_volume(
                    f"volume-lab-1-{row}", zone=zone, size_gib=100, snapshot_id=snapshot, tags={}
                )
            )
            return made.id

        first = volume(4, ZONES[0], None)
        site.boot(disk=site.disk(first, 4))
        site.ssh("echo 42 >thesis; mkdir -p a/b && ln -s ../thesis a/link")
        site.end()
        site.withdraw(4)
        made = cloud(lambda aws: aws.create_snapshot("snapshot-lab-1-1", volume_id=first, tags={}))
        second = volume(5, ZONES[1], made.id)
        cloud(lambda aws: aws.delete_volume(first))
        site.boot(ZONES[1], disk=site.disk(second, 5, ZONES[1]))
        assert site.ssh("cat thesis a/link; stat -c %U thesis") == "42\n42\ndev"
        assert "KEPT: your disk main; a snapshot" in site.ssh("cat /etc/motd")
        site.end()
        site.withdraw(5)
