"""Real nodes: kubelet, containerd and runc in namespaces of their own, for the tests' API server.

Each poses as a machine of a cloud. kill() of its parts, reboot() and power_off() are what happens
to such machines. When the test's process dies, so do they.
"""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil

from tests.support.harness.controlplane.api import Manifest, Refused
from tests.support.harness.controlplane.build import binaries
from tests.support.harness.controlplane.children import Child, free_port
from tests.support.harness.controlplane.nodes import KUBELET, is_ready
from tests.support.harness.controlplane.plane import ControlPlane
from tests.support.harness.controlplane.realnode import cgroups, images, texts
from tests.support.harness.controlplane.realnode.network import Network

PROGRAMS = ("kubelet", "device-plugin")
_BOOT = Path(__file__).parent / "boot.sh"
_CTR = ("ctr", "--address", texts.SOCKET, "--namespace", "k8s.io")


class Inside(Child):
    """A program in the namespaces of a node. It also ends with the node."""

    def __init__(self, machine: Child, argv: list[str], log: Path) -> None:
        super().__init__(argv, log)
        self._machine = machine
        self._own = argv

    def start(self) -> None:
        [first] = psutil.Process(self._machine.pid).children()
        entered = ["nsenter", "--target", str(first.pid), "--mount", "--pid", "--net"]
        self.argv = [*entered, f"--wdns={self.log.parent}", "--", *self._own]
        super().start()

    def kill(self) -> None:
        """The program, not only the command that entered the namespaces."""
        if self.running:
            for child in psutil.Process(self.pid).children():
                child.kill()
        super().kill()

    def restart(self) -> None:
        self.kill()
        self.start()


class RealNode:
    """One machine. The object of its node exists from the start, as a cloud creates it."""

    def __init__(
        self, plane: ControlPlane, network: Network, manifest: Manifest, *, number: int, port: int,
        folder: Path, settings: dict[str, Any],
    ) -> None:  # fmt: skip
        self.name: str = manifest["metadata"]["name"]
        self.folder = folder
        folder.mkdir()
        self._plane, self._network, self._manifest = plane, network, manifest
        kubeconfig = plane.kubeconfig(f"system:node:{self.name}", "system:nodes")
        self._cgroup = f"{cgroups.root()}/{self.name}"
        (folder / "cni").mkdir()
        (folder / "cni" / "nodes.conflist").write_text(texts.cni(number))
        (folder / "containerd.toml").write_text(texts.containerd() % (folder / "cni"))
        (folder / "kubelet.json").write_text(
            texts.kubelet(
                port=port, ca=plane.pki.ca, cgroup_root=f"/{self._cgroup}", settings=settings
            )
        )
        capacity = manifest["status"]["capacity"]
        programs = binaries(PROGRAMS)
        self.machine = Child([], folder / "machine.log")
        self.containerd = self._inside("containerd", "--config", str(folder / "containerd.toml"))
        self.kubelet = self._inside(
            str(programs["kubelet"]), f"--config={folder / 'kubelet.json'}",
            f"--kubeconfig={kubeconfig}", f"--hostname-override={self.name}",
            f"--cert-dir={folder / 'certs'}", "--cloud-provider=external", "--v=2",
        )  # fmt: skip
        devices = [f"{name}={count}" for name, count in capacity.items() if "/" in name]
        self.plugin = self._inside(str(programs["device-plugin"]), str(folder), *devices)

    def _inside(self, *argv: str) -> Inside:
        return Inside(self.machine, list(argv), self.folder / f"{Path(argv[0]).name}.log")

    def start(self) -> None:
        """Power on; returns when containerd answers and kubelet was started."""
        cgroups.prepare(self.name)
        capacity = self._manifest["status"]["capacity"]
        self.machine.argv = [
            "nsenter", f"--net={self._network.path}", "--",
            "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
            "--propagation", "private",
            "env", f"CPUS={capacity['cpu']}", f"MEMORY_KIB={_mib(capacity['memory']) * 1024}",
            f"HUGEPAGES={_mib(capacity.get('hugepages-2Mi', '0')) // 2}",
            "bash", str(_BOOT), str(self.folder),
        ]  # fmt: skip
        (self.folder / "booted").unlink(missing_ok=True)
        self.machine.start()
        self.machine.wait_until((self.folder / "booted").exists, f"{self.name} to boot", 30)
        self.start_containerd()
        self.kubelet.start()
        self.plugin.start()

    def restart_kubelet(self) -> None:
        """Returns when the device plugin is registered with the new one."""
        before = self._registered()
        self.kubelet.restart()
        wanted = sum("/" in name for name in self._manifest["status"]["capacity"])
        self.kubelet.wait_until(
            lambda: self._registered() >= before + wanted, f"{self.name}'s devices to be offered"
        )

    def _registered(self) -> int:
        return self.plugin.log.read_text().count(" is registered")

    def restart_containerd(self) -> None:
        self.containerd.kill()
        self.start_containerd()

    def start_containerd(self) -> None:
        self.containerd.start()
        self.containerd.wait_until(self._answers, "containerd to answer", 60)

    def _answers(self) -> bool:
        tried = self._run(*_CTR, "version", check=False)
        return tried == 0

    def load(self, *archives: Path) -> None:
        """Give containerd these images."""
        for archive in archives:
            self._run(*_CTR, "images", "import", str(archive))

    def _run(self, *argv: str, check: bool = True) -> int:
        one = Inside(self.machine, list(argv), self.folder / "commands.log")
        one.start()
        code = one.wait()
        assert code == 0 or not check, f"{' '.join(argv)}: {code}\n{one.tail()}"
        return code

    def ready(self) -> bool:
        """As the API server has it, with all devices."""
        try:
            node = self._plane.api.get(f"/api/v1/nodes/{self.name}")
        except Refused:
            return False
        offered, capacity = node["status"]["allocatable"], self._manifest["status"]["capacity"]
        boot = node["status"].get("nodeInfo", {}).get("bootID")
        return (
            is_ready(node)
            and boot == (self.folder / "fake" / "boot_id").read_text().strip()
            and all(offered.get(key) == capacity[key] for key in capacity if "/" in key)
        )

    def until_ready(self, within_s: float = 90.0) -> None:
        self.kubelet.wait_until(self.ready, f"{self.name} to be ready", within_s)

    def power_off(self) -> None:
        """Cut the power: every process ends at once, and the disk stays."""
        for part in (self.plugin, self.kubelet, self.containerd):
            part.kill()
        if self.machine.running:
            # When it has ended, so has every process of the node.
            first = psutil.Process(self.machine.pid).children()
            self.machine.kill()
            psutil.wait_procs(first, timeout=30)

    def reboot(self) -> None:
        """Off, and on again with another boot id."""
        self.power_off()
        self.start()

    def break_devices(self, *ids: str) -> None:
        """The device plugin reports these as unhealthy, and no others: `gpu-3`."""
        (self.folder / "unhealthy").write_text("".join(f"{one}\n" for one in ids))


def _mib(amount: str) -> int:
    return int(amount.removesuffix("Mi"))


class RealNodes:
    """Nodes on one network, `with RealNodes(plane, many_nodes(h100=2)) as nodes`.

    settings: of their KubeletConfiguration.
    """

    def __init__(
        self, plane: ControlPlane, manifests: list[Manifest], settings: dict[str, Any] | None = None
    ) -> None:
        # A short path: those of sockets are limited. Beside no other files of tests, because the
        # nodes fill it.
        self.folder = Path(tempfile.mkdtemp(prefix=f"{cgroups.root()}-"))
        self._plane = plane
        self._archives: dict[str, Path] = {}
        ports = [free_port() for _ in manifests]
        server = int(plane.url.rpartition(":")[2])
        self.network = Network(self.folder, plane.admin, inward=[server], outward=ports)
        self._manifests = manifests
        for manifest in manifests:
            manifest["metadata"]["labels"][KUBELET] = "real"
            manifest["status"]["addresses"] = [
                {"type": "InternalIP", "address": "127.0.0.1"},
                {"type": "Hostname", "address": manifest["metadata"]["name"]},
            ]
        self.nodes = [
            RealNode(
                plane, self.network, manifest, number=number, port=port,
                folder=self.folder / f"n{number}", settings=settings or {},
            )
            for number, (manifest, port) in enumerate(zip(manifests, ports, strict=True))
        ]  # fmt: skip
        self.names = [node.name for node in self.nodes]

    def __getitem__(self, name: str) -> RealNode:
        return next(node for node in self.nodes if node.name == name)

    def __enter__(self) -> RealNodes:
        try:
            self.start()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        self.network.start()
        for manifest in self._manifests:
            self._plane.api.create(manifest)
        self._each(RealNode.start)
        self.load(images.BOX, images.box)
        self.until_ready()

    def load(self, name: str, layer: images.Layer) -> None:
        """An image for all nodes."""
        if name not in self._archives:
            archive = self.folder / f"{uuid.uuid4().hex}.tar"
            self._archives[name] = images.make(archive, name, layer)
            self._each(lambda node: node.load(archive))

    def until_ready(self) -> None:
        for node in self.nodes:
            node.until_ready()

    def _each(self, do: Callable[[RealNode], None]) -> None:
        with ThreadPoolExecutor(len(self.nodes)) as pool:
            list(pool.map(do, self.nodes))

    def stop(self) -> None:
        """Everything of the nodes goes, but their objects."""
        self._each(RealNode.power_off)
        self.network.kill()
        try:
            cgroups.remove()
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)
            for folder in self.folder.parent.glob("odc-nodes-*-*"):
                pid = folder.name.split("-")[2]
                # Of a run that was killed.
                if pid.isdecimal() and not psutil.pid_exists(int(pid)):
                    shutil.rmtree(folder, ignore_errors=True)
