"""The nodes as reported to the planner."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec
import pytest

from odcd.executor.kubernetes.inventory import Inventory, offer_of, take_inventory
from odcd.executor.kubernetes.naming import key_of
from odcd.executor.kubernetes.objects import Node, Pod, Taint, quantity, requests
from odcd.executor.kubernetes.pods import PodSettings, pod_of
from odcd.executor.kubernetes.template import PodTemplate
from odcd.records.node import NodeReport
from tests.support.builders.dispatches import a_dispatch_of

SITE = PodSettings()
READY = {"type": "Ready", "status": "True"}
ALLOCATABLE = {"cpu": "191450m", "memory": "2036Gi", "nvidia.com/gpu": "8"}


def a_node(name: str = "n1", **more: Any) -> Node:
    labels = {
        "GpuType": "h100",
        "topology.kubernetes.io/zone": "us-east-1a",
        **more.pop("labels", {}),
    }
    status = {"allocatable": more.pop("allocatable", ALLOCATABLE),
              "conditions": more.pop("conditions", [READY])}  # fmt: skip
    return msgspec.convert(
        {"metadata": {"name": name, "labels": labels}, "spec": more, "status": status}, Node
    )


def a_pod(
    name: str = "other", owner: str | None = None, phase: str = "Running", node: str = "n1",
    labels: dict[str, str] | None = None, **resources: str,
) -> Pod:  # fmt: skip
    requests = dict(resources)
    if "gpu" in requests:
        requests["nvidia.com/gpu"] = requests.pop("gpu")
    return msgspec.convert(
        {
            "metadata": {
                "name": name, "namespace": "team", "labels": labels or {},
                "ownerReferences": [{"kind": owner}] if owner else [],
            },
            "spec": {"nodeName": node, "containers": [{"resources": {"requests": requests}}]},
            "status": {"phase": phase},
        },
        Pod,
    )  # fmt: skip


def inventory(*nodes: Node, pods: tuple[Pod, ...] = (), site: PodSettings = SITE) -> Inventory:
    types = {"p5.48xlarge": "h100", "g6.12xlarge": "l4"}
    return take_inventory(nodes, pods, lambda pod: key_of(pod) is not None, types, site.terms)


def report(*nodes: Node, **more: Any) -> NodeReport:
    [one] = inventory(*nodes, **more).nodes
    return one


def test_node_daemons_reduce_the_node_and_other_pods_count_as_usage() -> None:
    one = report(
        a_node(),
        pods=(
            a_pod("dcgm", "DaemonSet", cpu="450m", memory="1Gi"),
            a_pod("etcd", "Node", cpu="1"),
            a_pod("notebook", cpu="1500m", memory="10Gi", gpu="2"),
            a_pod("done", phase="Succeeded", cpu="64", gpu="4"),
            a_pod("elsewhere", node="n2", cpu="64", gpu="4"),
            a_pod("odc-7-1-0", labels={"app.kubernetes.io/managed-by": "odcd"}, cpu="9", gpu="1"),
        ),
    )
    assert (one.gpus, one.cpus, one.mem_mib) == (8, 190, 2035 * 1024)
    assert (one.foreign_gpus, one.foreign_cpus, one.foreign_mem_mib) == (2, 2, 10 * 1024)
    assert (one.state, one.zone) == ("UP", "us-east-1a")


@pytest.mark.parametrize(
    ("fields", "state", "says"),
    [
        ({"conditions": [{"type": "Ready", "status": "False", "message": "disk"}]}, "DOWN", "disk"),
        ({"conditions": [{"type": "Ready", "status": "Unknown"}]}, "DOWN", "not ready"),
        ({"conditions": []}, "DOWN", "not ready"),
        ({"unschedulable": True}, "DRAIN", "cordoned"),
        ({"taints": [{"key": "dedicated", "value": "ml", "effect": "NoSchedule"}]}, "DRAIN",
         "dedicated=ml:NoSchedule"),
        ({"taints": [{"key": "nvidia.com/gpu", "effect": "NoSchedule"}]}, "UP", ""),
        ({"taints": [{"key": "odc.dev/pool", "effect": "NoExecute"}]}, "UP", ""),
        ({"taints": [{"key": "nvidia.com/gpu", "effect": "NoExecute"}]}, "DRAIN",
         "nvidia.com/gpu:NoExecute"),
        ({"taints": [{"key": "dedicated", "effect": "PreferNoSchedule"}]}, "UP", ""),
        ({"taints": [{"key": "node.kubernetes.io/not-ready", "effect": "NoExecute"}]}, "UP", ""),
        *((
            {"taints": [{"key": f"node.{key}", "effect": "NoSchedule"}]}, "DRAIN", key
        ) for key in (
            "kubernetes.io/disk-pressure", "kubernetes.io/memory-pressure",
            "kubernetes.io/pid-pressure", "kubernetes.io/network-unavailable",
            "cloudprovider.kubernetes.io/uninitialized",
        )),
        ({"taints": [{"key": "node.kubernetes.io/out-of-service", "value": "nodeshutdown",
                      "effect": "NoExecute"}]}, "DRAIN", "out-of-service"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_the_state_of_a_node_follows_its_conditions(
    fields: dict[str, Any], state: str, says: str
) -> None:
    one = report(a_node(**fields))
    assert one.state == state
    assert says in (one.reason or "")


def test_a_site_tolerates_taints_of_its_own() -> None:
    node = a_node(taints=[{"key": "dedicated", "effect": "NoSchedule"}])
    assert report(node, site=PodSettings(tolerated=("dedicated",))).state == "UP"
    template = PodTemplate({"tolerations": [{"operator": "Exists", "effect": "NoSchedule"}]})
    assert report(node, site=PodSettings(template=template)).state == "UP"


def test_a_node_that_lacks_the_label_of_the_pod_template_takes_no_jobs() -> None:
    site = PodSettings(template=PodTemplate({"nodeSelector": {"pool": "odc"}}))
    assert "pool=odc" in (report(a_node(), site=site).reason or "")
    assert report(a_node(labels={"pool": "odc"}), site=site).state == "UP"


@pytest.mark.parametrize(
    "taint",
    [
        {"key": "odc.dev/pool", "effect": "NoSchedule"},
        {"key": "odc.dev/pool", "effect": "NoExecute", "value": "a"},
        {"key": "nvidia.com/gpu", "effect": "NoSchedule", "value": "present"},
        {"key": "dedicated", "effect": "NoSchedule"},
        {"key": "node.kubernetes.io/unreachable", "effect": "NoExecute"},
    ],
    ids=lambda taint: f"{taint['key']}:{taint['effect']}",
)
def test_a_pod_tolerates_the_taints_of_each_node_that_is_planned_with(
    taint: dict[str, str],
) -> None:
    """Before: nodes with taints of odc.dev were planned with, but no pod was scheduled there."""
    site = PodSettings(tolerated=("dedicated",), image="registry.example/job:1.0")
    node = a_node("gpu-01", taints=[taint])
    assert report(node, site=site).state == "UP"
    dispatch, texts = a_dispatch_of()
    assert dispatch.members[0].node == "gpu-01"
    del texts
    pod = pod_of(dispatch, dispatch.members[0], {}, {"gpu-01": offer_of(node)}, site)
    made = msgspec.convert(node.spec.taints[0], Taint, from_attributes=True)
    assert any(
        one.get("key") == made.key and one.get("effect", made.effect) == made.effect
        for one in pod["spec"]["tolerations"]
    )


def test_a_site_names_the_types_of_its_nodes_without_gpus() -> None:
    allocatable = {"cpu": "64", "memory": "512Gi"}
    node = a_node(labels={"GpuType": "large-memory"}, allocatable=allocatable)
    one = report(node)
    assert (one.gpu_type, one.gpus, one.state) == ("large-memory", 0, "UP")


GPUS = {"nvidia.com/gpu.count": "8", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}


@pytest.mark.parametrize(
    ("labels", "capacity", "gpu_type", "gpus"),
    [
        (GPUS | {"GpuType": ""}, {}, "h100", 8),
        ({"GpuType": "", "node.kubernetes.io/instance-type": "p5.48xlarge"}, {}, "h100", 0),
        ({"GpuType": ""}, {"nvidia.com/gpu": "8"}, "gpu", 8),
        ({"GpuType": "h100"}, {}, "h100", 0),
    ],
    ids=["labels", "instance type", "capacity", "type"],
)
def test_a_node_without_its_device_plugin_is_drained_and_keeps_type_and_size(
    labels: dict[str, str], capacity: dict[str, str], gpu_type: str, gpus: int
) -> None:
    """Before: it became a node of CPU type, which took jobs without GPUs. Kubelet offers no GPUs
    for some seconds after each restart."""
    node = a_node(labels=labels, allocatable=ALLOCATABLE | {"nvidia.com/gpu": "0"})
    node.status.capacity = capacity
    one = report(node)
    assert (one.gpu_type, one.gpus, one.state) == (gpu_type, gpus, "DRAIN")
    assert one.reason == "its device plugin offers no GPUs"


@pytest.mark.parametrize(
    ("labels", "gpus", "expected"),
    [
        ({"GpuType": "B200"}, "8", "b200"),
        ({"GpuType": "", "node.kubernetes.io/instance-type": "p5.48xlarge"}, "8", "h100"),
        ({"GpuType": "", "nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"}, "8", "a100"),
        ({"GpuType": "", "nvidia.com/gpu.product": "Tesla-V100"}, "8", "tesla-v100"),
        ({"GpuType": ""}, "8", "gpu"),
        ({"GpuType": "", "kubernetes.io/arch": "arm64"}, "0", "cpu-arm"),
        ({"GpuType": ""}, "0", "cpu-x86"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_the_gpu_type_is_read_from_labels(labels: dict[str, str], gpus: str, expected: str) -> None:
    node = a_node(labels=labels, allocatable={**ALLOCATABLE, "nvidia.com/gpu": gpus})
    assert report(node).gpu_type == expected


@pytest.mark.parametrize(
    ("allocatable", "says"),
    [
        ({}, "nothing is left"),
        ({"cpu": "500m", "memory": "1Gi"}, "0 CPUs"),
        ({"cpu": "eight", "memory": "1Gi"}, "cannot be read"),
        ({**ALLOCATABLE, "nvidia.com/gpu": "64"}, "at most 62"),
    ],
    ids=["nothing", "less than a CPU", "nonsense", "too many GPUs"],
)
def test_an_unusable_node_is_left_out_with_the_reason(
    allocatable: dict[str, str], says: str
) -> None:
    taken = inventory(a_node(allocatable=allocatable))
    assert taken.nodes == []
    assert says in taken.left_out["n1"]


def test_control_plane_and_ignored_nodes_are_left_out() -> None:
    taken = inventory(
        a_node("cp", labels={"node-role.kubernetes.io/control-plane": ""}),
        a_node("mine", labels={"odc.dev/ignore": "true"}),
    )
    assert (taken.nodes, taken.left_out) == ([], {})


def test_features_and_topology_are_labels() -> None:
    one = report(
        a_node(
            labels={
                "feature.odc.dev/nvme": "true", "feature.odc.dev/rack": "r7", "nsight": "true",
                "node.kubernetes.io/instance-type": "p5.48xlarge",
                "kubernetes.io/hostname": "ip-10-0-0-1",
                "topology.k8s.aws/network-node-layer-1": "nn-1",
                "topology.k8s.aws/network-node-layer-2": "nn-2",
                "odc.dev/placement-group": "pg-1",
            }
        )
    )  # fmt: skip
    assert one.features == ("nsight", "nvme", "p5.48xlarge", "rack-r7")
    assert (one.topology, one.efa_domain) == (("nn-1", "nn-2"), "pg-1")


@pytest.mark.parametrize(
    ("text", "value"),
    [("3920m", "3.92"), ("16Gi", str(16 * 2**30)), ("1e3", "1000"), ("2", "2"), ("5k", "5000")],
    ids=str,
)
def test_kubernetes_quantities_are_parsed(text: str, value: str) -> None:
    assert quantity(text) == Decimal(value)


@pytest.mark.parametrize("text", ["", "eight", "1Zi", "--1", "1.2.3"], ids=str)
def test_an_invalid_amount_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not an amount"):
        quantity(text)


def test_the_request_of_a_pod_is_its_maximum_over_time() -> None:
    pod = msgspec.convert(
        {
            "spec": {
                "containers": [{"resources": {"requests": {"cpu": "1"}}},
                               {"resources": {"requests": {"cpu": "2"}}}],
                "initContainers": [
                    {"restartPolicy": "Always", "resources": {"requests": {"cpu": "500m"}}},
                    {"resources": {"requests": {"cpu": "4"}}},
                ],
                "overhead": {"cpu": "250m"},
            }
        },
        Pod,
    )  # fmt: skip
    assert requests(pod, "cpu") == Decimal("4.75")
