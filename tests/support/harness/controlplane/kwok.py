"""KWOK beside a cluster: it simulates the kubelet of every node labelled for it, and runs nothing.

kwok-stages.yaml has the behaviour of its pods, and the annotations that choose it.
"""

from __future__ import annotations

from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

import yaml

from tests.support.harness.controlplane.build import binaries
from tests.support.harness.controlplane.children import Child, free_port
from tests.support.harness.controlplane.nodes import KUBELET, delete_leases
from tests.support.harness.controlplane.pki import Pki
from tests.support.harness.controlplane.plane import Cluster

_STAGES = Path(__file__).parent / "kwok-stages.yaml"
_LOG_TIME = "2026-01-01T00:00:00.000000000Z"


class Kwok(Child):
    """The process. Restart it where it may have missed something: it then reads all pods again.

    lease_s: a quarter of it is the time between a node's heartbeats; at 1,000 nodes, 80 s are 50
    writes a second. Must be below four times the plane's node_grace_s.
    log_lines: what every pod's log says, through the API server too.
    """

    def __init__(
        self,
        cluster: Cluster,
        folder: Path,
        *,
        lease_s: int = 80,
        log_lines: tuple[str, ...] = ("hello from kwok",),
    ) -> None:
        folder.mkdir(exist_ok=True)
        self._cluster = cluster
        port = free_port()
        log = folder / "container.log"
        log.write_text("".join(f"{_LOG_TIME} stdout F {line}\n" for line in log_lines))
        pki = Pki(folder / "pki")
        config = folder / "kwok.yaml"
        config.write_text(_options(port, lease_s) + _logs(log) + _STAGES.read_text())
        super().__init__(
            [
                str(binaries(("kwok",))["kwok"]),
                f"--kubeconfig={cluster.admin}",
                f"--config={config}",
                f"--server-address=127.0.0.1:{port}",
                f"--tls-cert-file={pki.server_cert}",
                f"--tls-private-key-file={pki.server_key}",
            ],
            folder / "kwok.log",
            env={"HOME": str(folder)},
        )
        self._health = f"http://127.0.0.1:{port}/healthz"

    def start(self) -> None:
        super().start()
        self.wait_until(self._healthy, "kwok to be ready")

    def restart(self) -> None:
        """Kills it and starts it again; it takes over its nodes' leases at once."""
        self.kill()
        ours = self._cluster.api.items("/api/v1/nodes", labelSelector=f"{KUBELET}=kwok")
        delete_leases(self._cluster.api, [node["metadata"]["name"] for node in ours])
        self.start()

    def _healthy(self) -> bool:
        try:
            with urlopen(self._health, timeout=2) as answer:
                return answer.status == 200
        except (URLError, OSError):
            return False

    def __enter__(self) -> Kwok:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


def _options(port: int, lease_s: int) -> str:
    return _document(
        {
            "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
            "kind": "KwokConfiguration",
            "options": {
                "manageNodesWithLabelSelector": f"{KUBELET}=kwok",
                "nodeIP": "127.0.0.1",
                "nodePort": port,
                "enableDebuggingHandlers": True,
                "cidr": "10.128.0.1/12",
                "nodeLeaseDurationSeconds": lease_s,
                "nodeLeaseParallelism": 4,
                "nodePlayStageParallelism": 8,
                "podPlayStageParallelism": 16,
                "podsOnNodeSyncParallelism": 4,
            },
        }
    )


def _logs(file: Path) -> str:
    return _document(
        {
            "apiVersion": "kwok.x-k8s.io/v1alpha1",
            "kind": "ClusterLogs",
            "metadata": {"name": "all"},
            "spec": {"logs": [{"logsFile": str(file)}]},
        }
    )


def _document(value: object) -> str:
    return yaml.safe_dump(value) + "---\n"
