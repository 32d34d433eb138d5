"""Node objects as EKS creates them: one kind per GPU type, with labels, taints and devices."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from tests.support.harness.controlplane.api import Api, Manifest, Refused

KUBELET = "test.odc.dev/kubelet"
"""A label: the substitute for the node's kubelet, `kwok` or `processes`; without it, none."""
PLACEMENT_GROUP = "odc.dev/placement-group"
_LEASES = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
HUGEPAGES_MIB = 10256
"""The reservation of the EFA installer: 5,128 pages of 2 MiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A GPU type's node; the numbers are those of the table gpu_type in sql/migrations."""

    instance_type: str
    product: str = ""
    gpus: int = 0
    cpus: int
    mem_mib: int
    efa: int = 0
    arch: str = "amd64"


KINDS: dict[str, Kind] = {
    "b200": Kind(
        instance_type="p6-b200.48xlarge", product="NVIDIA-B200", gpus=8, cpus=192,
        mem_mib=2097152, efa=8,
    ),
    "h200": Kind(
        instance_type="p5en.48xlarge", product="NVIDIA-H200", gpus=8, cpus=192,
        mem_mib=2097152, efa=16,
    ),
    "h100": Kind(
        instance_type="p5.48xlarge", product="NVIDIA-H100-80GB-HBM3", gpus=8, cpus=192,
        mem_mib=2097152, efa=32,
    ),
    "a100": Kind(
        instance_type="p4d.24xlarge", product="NVIDIA-A100-SXM4-40GB", gpus=8, cpus=96,
        mem_mib=1179648, efa=4,
    ),
    "a10g": Kind(
        instance_type="g5.12xlarge", product="NVIDIA-A10G", gpus=4, cpus=48,
        mem_mib=196608, efa=1,
    ),
    "l4": Kind(
        instance_type="g6.12xlarge", product="NVIDIA-L4", gpus=4, cpus=48, mem_mib=196608, efa=1
    ),
    "t4": Kind(
        instance_type="g4dn.12xlarge", product="Tesla-T4", gpus=4, cpus=48, mem_mib=196608
    ),
    "t4-small": Kind(
        instance_type="g4dn.xlarge", product="Tesla-T4", gpus=1, cpus=4, mem_mib=16384
    ),
    "cpu-x86": Kind(instance_type="c7i.4xlarge", cpus=16, mem_mib=32768),
    "cpu-arm": Kind(instance_type="c7g.4xlarge", cpus=16, mem_mib=32768, arch="arm64"),
}  # fmt: skip


def a_node(
    gpu_type: str = "h100",
    name: str = "",
    *,
    zone: str = "us-east-2a",
    layers: tuple[str, str, str] | None = None,
    placement_group: str = "",
    kubelet: str = "kwok",
    taints: Iterable[Mapping[str, str]] | None = None,
    labels: Mapping[str, str] | None = None,
    capacity: Mapping[str, str] | None = None,
) -> Manifest:
    """A node; `labels` and `capacity` add to those of its type or replace them."""
    kind = KINDS[gpu_type]
    name = name or f"{gpu_type}-0"
    full = _capacity(kind) | dict(capacity or {})
    layers = layers or (f"nn-{zone}", f"nn-{zone}-{gpu_type}", f"nn-{zone}-{gpu_type}-0")
    found = {
        "GpuType": gpu_type,
        "beta.kubernetes.io/arch": kind.arch,
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": kind.arch,
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": kind.instance_type,
        "topology.kubernetes.io/region": zone[:-1],
        "topology.kubernetes.io/zone": zone,
        KUBELET: kubelet,
    }
    found |= {
        f"topology.k8s.aws/network-node-layer-{number}": layer
        for number, layer in enumerate(layers, 1)
    }
    if kind.gpus:
        found |= {
            "nvidia.com/gpu.count": str(kind.gpus),
            "nvidia.com/gpu.present": "true",
            "nvidia.com/gpu.product": kind.product,
        }
    if placement_group:
        found[PLACEMENT_GROUP] = placement_group
    if taints is None:
        gpu = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
        taints = [gpu] if kind.gpus else []
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": found | dict(labels or {})},
        "spec": {"taints": [dict(taint) for taint in taints]},
        "status": {"capacity": full, "allocatable": _allocatable(kind, full)},
    }


def many_nodes(
    zones: Iterable[str] = ("us-east-2a", "us-east-2b"), rack: int = 4, **counts: int
) -> list[Manifest]:
    """So many nodes of each type: `many_nodes(h100=1000, cpu_x86=3)`, named `h100-0000` and on.

    Zones take turns by blocks of four racks; the nodes of a rack share the innermost layer.
    """
    zones = list(zones)
    made: list[Manifest] = []
    for keyword, count in counts.items():
        gpu_type = keyword.replace("_", "-")
        for number in range(count):
            block = number // (rack * 4)
            zone = zones[block % len(zones)]
            spine = f"nn-{zone}-{gpu_type}"
            layers = (f"nn-{zone}", f"{spine}-{block}", f"{spine}-{number // rack}")
            made.append(
                a_node(
                    gpu_type,
                    f"{gpu_type}-{number:04d}",
                    zone=zone,
                    layers=layers,
                    placement_group=f"pg-{spine}" if KINDS[gpu_type].efa else "",
                )
            )
    return made


def lose_node(api: Api, name: str) -> None:
    """The node stops reporting and the controllers have noticed: no heartbeat, Ready is Unknown."""
    api.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": {KUBELET: None}}})
    message = "Kubelet stopped posting node status."
    unknown = {
        "type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": message,
    }  # fmt: skip
    api.patch(f"/api/v1/nodes/{name}/status", {"status": {"conditions": [unknown]}}, "strategic")


def return_node(api: Api, name: str) -> None:
    """A lost node's kubelet is back (a KWOK node)."""
    api.patch(f"/api/v1/nodes/{name}", {"metadata": {"labels": {KUBELET: "kwok"}}})


def delete_nodes(api: Api, names: Iterable[str], at_once: int = 8) -> None:
    """Delete nodes, and their pods by force, as when instances are terminated immediately."""
    gone = set(names)
    paths = [
        f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
        for pod in api.items("/api/v1/pods")
        if pod["spec"].get("nodeName") in gone
    ]
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(lambda path: _gone(api, path, 0), paths))
        list(pool.map(lambda name: _gone(api, f"/api/v1/nodes/{name}"), sorted(gone)))
    delete_leases(api, gone)  # otherwise the next node of that name would start with a dead one's


def delete_leases(api: Api, names: Iterable[str], at_once: int = 8) -> None:
    """Delete the leases of these nodes, as if they never had a kubelet."""
    with ThreadPoolExecutor(at_once) as pool:
        list(pool.map(lambda name: _gone(api, f"{_LEASES}/{name}"), sorted(names)))


def until_ready(api: Api, names: Iterable[str], within_s: float = 90.0) -> None:
    """Wait until all these nodes are ready."""
    missing = set(names)
    pause_s = 0.1 + len(missing) / 1000
    until = time.monotonic() + within_s
    while missing := missing - {
        node["metadata"]["name"] for node in api.items("/api/v1/nodes") if is_ready(node)
    }:
        some = ", ".join(sorted(missing)[:5])
        assert time.monotonic() < until, f"{len(missing)} nodes not ready in {within_s:g} s: {some}"
        time.sleep(pause_s)


def is_ready(node: Manifest) -> bool:
    """The node reports Ready, and has no taint of the controllers."""
    conditions: list[Any] = node["status"].get("conditions", [])
    taints: list[Any] = node["spec"].get("taints", [])
    return any(
        one["type"] == "Ready" and one["status"] == "True" for one in conditions
    ) and not any(one["key"].startswith("node.kubernetes.io/") for one in taints)


def _gone(api: Api, path: str, grace_s: int | None = None) -> None:
    try:
        api.delete(path, grace_s)
    except Refused as refused:
        if refused.code != 404:
            raise


def _capacity(kind: Kind) -> dict[str, str]:
    found = {
        "cpu": str(kind.cpus),
        "memory": f"{kind.mem_mib}Mi",
        "ephemeral-storage": "200Gi",
        "hugepages-1Gi": "0",
        "hugepages-2Mi": f"{HUGEPAGES_MIB}Mi" if kind.efa else "0",
        "pods": "110",
    }
    if kind.gpus:
        found["nvidia.com/gpu"] = str(kind.gpus)
    if kind.efa:
        found["vpc.amazonaws.com/efa"] = str(kind.efa)
    return found


def _allocatable(kind: Kind, capacity: Mapping[str, str]) -> dict[str, str]:
    """The rest after EKS's reservation: 255 MiB and 11 per pod, 100 for eviction; CPUs on a falling
    scale."""
    reserved_millis = 60 + 10 * (kind.cpus > 1) + 5 * min(max(kind.cpus - 2, 0), 2)
    reserved_millis += 25 * max(kind.cpus - 4, 0) // 10
    huge_mib = HUGEPAGES_MIB if kind.efa else 0
    return dict(capacity) | {
        "cpu": f"{int(capacity['cpu']) * 1000 - reserved_millis}m",
        "memory": f"{int(capacity['memory'][:-2]) - 255 - 11 * 110 - 100 - huge_mib}Mi",
    }
