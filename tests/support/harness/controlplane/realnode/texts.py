"""The configuration files of a real node."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.support.harness.controlplane.realnode.images import BOX
from tests.support.harness.controlplane.realnode.needs import CNI
from tests.support.harness.controlplane.realnode.network import BRIDGE, GATEWAY, NAMES, SUBNET

SOCKET = "/run/containerd/containerd.sock"


def containerd() -> str:
    return f"""\
version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
disabled_plugins = ["io.containerd.snapshotter.v1.devmapper", "io.containerd.snapshotter.v1.zfs"]
[grpc]
  address = "{SOCKET}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{BOX}"
  stats_collect_period = 1
  disable_apparmor = true
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{CNI}"
    conf_dir = "%s"
"""


def cni(number: int) -> str:
    """The bridge that all nodes share; each has addresses of its own."""
    ipam = {
        "type": "host-local",
        "ranges": [
            [
                {
                    "subnet": SUBNET, "gateway": GATEWAY,
                    "rangeStart": f"10.244.{number + 1}.2", "rangeEnd": f"10.244.{number + 1}.250",
                }
            ]
        ],
        "routes": [{"dst": "0.0.0.0/0"}],
    }  # fmt: skip
    bridge = {"type": "bridge", "bridge": BRIDGE, "hairpinMode": True, "ipam": ipam}
    return json.dumps({"cniVersion": "0.4.0", "name": "nodes", "plugins": [bridge]})


def kubelet(*, port: int, ca: Path, cgroup_root: str, settings: dict[str, Any]) -> str:
    """settings: of KubeletConfiguration, in addition to these or instead of them."""
    low = {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"}
    return json.dumps(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "failCgroupV1": False,
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": cgroup_root,
            "containerRuntimeEndpoint": f"unix://{SOCKET}",
            "address": "127.0.0.1",
            "port": port,
            "readOnlyPort": 0,
            "healthzPort": 0,
            "registerNode": False,
            # Only the API server reaches its port.
            "authentication": {
                "anonymous": {"enabled": True}, "webhook": {"enabled": False},
                "x509": {"clientCAFile": str(ca)},
            },
            "authorization": {"mode": "AlwaysAllow"},
            "failSwapOn": False,
            "makeIPTablesUtilChains": False,
            "evictionHard": low | {"nodefs.inodesFree": "1%"},
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
            "clusterDNS": [NAMES],
            "clusterDomain": "cluster.local",
            "resolvConf": "",
            "nodeStatusUpdateFrequency": "1s",
            "nodeLeaseDurationSeconds": 8,
            "volumeStatsAggPeriod": "1s",
            "syncFrequency": "2s",
            **settings,
        },
        indent=1,
    )  # fmt: skip
