"""Nodes that really run their pods' containers, as processes of this machine, for tests.

Containers run programs of this machine. The name of the image does not matter, except that
`missing/…`, `private/…` and `badname/…` fail as such images do. A container's root is the
host's, in an overlay.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support.harness.controlplane.api import Manifest
from tests.support.harness.controlplane.children import Child, free_port, module
from tests.support.harness.controlplane.kubelet.memory import sweep
from tests.support.harness.controlplane.nodes import KUBELET, is_ready
from tests.support.harness.controlplane.pki import Pki
from tests.support.harness.controlplane.plane import Cluster


def why_not() -> str:
    """Empty if containers can run as processes; otherwise what is missing."""
    if os.geteuid() != 0:
        return "runs containers as processes, which needs root: mounts and users"
    tried = subprocess.run(
        [sys.executable, "-c", _TRY], capture_output=True, text=True, timeout=20, check=False
    )
    return "" if tried.returncode == 0 else f"cannot make namespaces here: {tried.stderr.strip()}"


_TRY = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(0x00020000 | 0x04000000 | 0x08000000 | 0x20000000):
    sys.exit("unshare: " + os.strerror(ctypes.get_errno()))
if libc.mount(b"none", b"/", b"", ctypes.c_ulong(16384 | 1 << 18), None):
    sys.exit("mount: " + os.strerror(ctypes.get_errno()))
"""


class ProcessNodes(Child):
    """A kubelet of its own process for these nodes; killed, its containers die with it.

    pause() makes the node hang: the containers continue without reports. kill() is lost power.
    """

    def __init__(
        self, cluster: Cluster, folder: Path, nodes: list[Manifest], *, lease_s: int = 40,
        volumes: Path | None = None,
    ) -> None:  # fmt: skip
        """volumes: folders used as volumes of a cloud, by their handles."""
        folder.mkdir(exist_ok=True)
        self.volumes = volumes or folder / "volumes"
        self.names = [node["metadata"]["name"] for node in nodes]
        self._cluster = cluster
        pki = Pki(folder / "pki")
        for node in nodes:
            node["metadata"]["labels"][KUBELET] = "processes"
        config = folder / "config.json"
        config.write_text(
            json.dumps(
                {
                    "kubeconfig": str(cluster.admin),
                    "folder": str(folder),
                    "volumes": str(self.volumes),
                    "port": free_port(),
                    "cert": str(pki.server_cert),
                    "key": str(pki.server_key),
                    "nodes": nodes,
                    "lease_s": lease_s,
                }
            )
        )
        argv, env = module("tests.support.harness.controlplane.kubelet", str(config))
        super().__init__(argv, folder / "kubelet.log", env)

    def start(self) -> None:
        super().start()
        self.wait_until(self._ready, f"nodes {', '.join(self.names)} to be ready")

    def _ready(self) -> bool:
        found = {one["metadata"]["name"]: one for one in self._cluster.api.items("/api/v1/nodes")}
        return all(name in found and is_ready(found[name]) for name in self.names)

    def kill(self) -> None:
        super().kill()
        pods = self.log.parent / "pods"
        if pods.is_dir():
            sweep(pod.name for pod in pods.iterdir())

    def restart(self) -> None:
        self.kill()
        self.start()

    def __enter__(self) -> ProcessNodes:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
