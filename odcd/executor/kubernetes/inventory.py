"""Nodes as the planner counts them: kubelet's allocatable resources minus DaemonSets, and the use
by other workloads."""

from __future__ import annotations

import logging
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from odcd.executor.gpus import type_of
from odcd.executor.kubernetes import node_features
from odcd.executor.kubernetes.objects import (
    DISK,
    EFA,
    GPU,
    HUGEPAGES,
    MIB,
    Node,
    Pod,
    amount,
    quantity,
    requests,
)
from odcd.executor.kubernetes.tolerations import Terms, own_taints
from odcd.records.node import NodeReport, NodeState

log = logging.getLogger(__name__)

TYPE_LABEL = "GpuType"
INSTANCE_LABEL = "node.kubernetes.io/instance-type"
PRODUCT_LABEL = "nvidia.com/gpu.product"
ZONE_LABEL = "topology.kubernetes.io/zone"
GROUP_LABELS = ("odc.dev/placement-group", "PlacementGroup")
LAYER_LABEL = "topology.k8s.aws/network-node-layer-"
ARCH_LABEL = "kubernetes.io/arch"
FEATURE_PREFIX = "feature.odc.dev/"
FEATURE_LABELS = (INSTANCE_LABEL, ARCH_LABEL, "karpenter.sh/capacity-type")
FEATURE_FLAGS = ("nsight",)
IGNORE_LABEL = "odc.dev/ignore"
NOT_OURS = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
GPU_LABELS = ("nvidia.com/gpu.present", "nvidia.com/gpu.count", PRODUCT_LABEL)
"""Labels that NVIDIA's feature discovery sets on nodes with GPUs."""
MAX_GPUS = 62
CPU_TYPES = "cpu"
"""The names of types without GPUs start with this."""
DAEMON_SHARE = Decimal("0.25")
"""The part of a node's CPUs or memory by which DaemonSets can make it smaller."""


@dataclass(slots=True, kw_only=True)
class _Use:
    """Use of one node by pods that are not odc's jobs: either DaemonSets, or all others."""

    cpus: Decimal = Decimal(0)
    memory: Decimal = Decimal(0)
    gpus: int = 0

    def join(self, more: _Use) -> None:
        self.cpus += more.cpus
        self.memory += more.memory
        self.gpus += more.gpus

    def add(self, pod: Pod) -> None:
        self.cpus += requests(pod, "cpu")
        self.memory += requests(pod, "memory")
        self.gpus += int(requests(pod, GPU))


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """nodes: by name. left_out: nodes that can run nothing, and why."""

    nodes: list[NodeReport] = field(default_factory=list[NodeReport])
    left_out: dict[str, str] = field(default_factory=dict[str, str])


def is_daemon(pod: Pod) -> bool:
    """Whether the pod belongs to its node, like those of DaemonSets and static pods."""
    return any(owner.kind in ("DaemonSet", "Node") for owner in pod.metadata.owner_references)


def is_over(pod: Pod) -> bool:
    return pod.status.phase in ("Succeeded", "Failed")


def is_ready(node: Node) -> bool:
    """Whether the node's kubelet answers, as far as the cluster knows."""
    return any(c.type == "Ready" and c.status == "True" for c in node.status.conditions)


def take_inventory(
    nodes: Iterable[Node],
    pods: Iterable[Pod],
    is_ours: Callable[[Pod], bool],
    instance_types: Mapping[str, str],
    terms: Terms,
) -> Inventory:
    """is_ours: whether a pod belongs to a job. instance_types: GPU type by the cloud's instance
    type. terms: the conditions under which a node accepts the pods of jobs."""
    daemons: defaultdict[str, _Use] = defaultdict(_Use)
    others: defaultdict[str, _Use] = defaultdict(_Use)
    for pod in pods:
        if pod.spec.node_name and not is_over(pod) and not is_ours(pod):
            (daemons if is_daemon(pod) else others)[pod.spec.node_name].add(pod)
    inventory = Inventory()
    for node in nodes:
        name, labels = node.metadata.name, node.metadata.labels
        if IGNORE_LABEL in labels or any(role in labels for role in NOT_OURS):
            continue
        report = _report(node, daemons[name], others[name], instance_types, terms)
        if isinstance(report, str):
            inventory.left_out[name] = report
        else:
            inventory.nodes.append(report)
    return inventory


def _report(
    node: Node, daemon: _Use, other: _Use, instance_types: Mapping[str, str],
    terms: Terms,
) -> NodeReport | str:  # fmt: skip
    labels, offered = node.metadata.labels, node.status.allocatable
    try:
        gpus = int(quantity(offered.get(GPU, "0")))
        all_cpus = quantity(offered.get("cpu", "0"))
        # Allocatable memory excludes huge pages already: kubelet subtracts them.
        all_memory = quantity(offered.get("memory", "0"))
    except ValueError as error:
        return f"its allocatable resources cannot be read: {error}"
    if all_cpus < 1 or all_memory < MIB:
        return f"nothing is left for jobs: {math.floor(all_cpus)} CPUs, {all_memory // MIB} MiB"
    if gpus > MAX_GPUS:
        return f"it has {gpus} GPUs, but odc supports at most {MAX_GPUS} per node"
    state, reason = _state(node, terms)
    if not gpus and (missing := _missing_gpus(node, instance_types)) is not None:
        # Its size stays, so that jobs for it are not refused while its device plugin restarts.
        gpus = missing
        if state == "UP":
            state, reason = "DRAIN", "its device plugin offers no GPUs"
    if daemon.gpus or max(daemon.cpus / all_cpus, daemon.memory / all_memory) > DAEMON_SHARE:
        # Every user of the cluster can create a pod that names a DaemonSet as its owner. So large
        # ones do not make the node smaller: they use it, like any other pod.
        other.join(daemon)
    else:
        all_cpus, all_memory = all_cpus - daemon.cpus, all_memory - daemon.memory
    cpus, mem_mib = math.floor(all_cpus), math.floor(all_memory / MIB)
    return NodeReport(
        name=node.metadata.name,
        gpu_type=_gpu_type(node, gpus, instance_types),
        gpus=gpus,
        cpus=cpus,
        mem_mib=mem_mib,
        zone=labels.get(ZONE_LABEL),
        efa_domain=next((labels[key] for key in GROUP_LABELS if labels.get(key)), None),
        topology=tuple(
            labels[f"{LAYER_LABEL}{layer}"]
            for layer in range(1, 10)
            if labels.get(f"{LAYER_LABEL}{layer}")
        ),
        features=_features(labels),
        state=state,
        reason=reason,
        foreign_gpus=min(other.gpus, gpus),
        foreign_cpus=min(math.ceil(other.cpus), cpus),
        foreign_mem_mib=min(math.ceil(other.memory / MIB), mem_mib),
        tmp_mib=int(amount(offered, DISK) / MIB),
    )


def _state(node: Node, terms: Terms) -> tuple[NodeState, str | None]:
    """UP, DRAIN or DOWN, and why. A node that does not report its health is not healthy."""
    ready = next((c for c in node.status.conditions if c.type == "Ready"), None)
    if ready is None or ready.status != "True":
        why = (ready.message or ready.reason) if ready else "kubelet has not reported its state yet"
        return "DOWN", f"not ready: {why}"[:500]
    if node.metadata.deletion_timestamp is not None:
        return "DRAIN", "being deleted"
    if node.spec.unschedulable:
        return "DRAIN", "cordoned"
    refusal = terms.refusal(node)
    return ("UP", None) if refusal is None else ("DRAIN", refusal)


def _missing_gpus(node: Node, instance_types: Mapping[str, str]) -> int | None:
    """How many GPUs a node should have that offers none to pods; 0: unknown. None: it is not a node
    with GPUs."""
    labels = node.metadata.labels
    named = labels.get(TYPE_LABEL, "").lower()
    if named not in instance_types.values():
        # A site may give nodes without GPUs a type of its own.
        named = instance_types.get(labels.get(INSTANCE_LABEL, ""), "")
    known = GPU in node.status.capacity or any(
        labels.get(key, "false") not in ("false", "0") for key in GPU_LABELS
    )
    if not known and (not named or named.startswith(CPU_TYPES)):
        return None
    count = labels.get("nvidia.com/gpu.count", "")
    by_label = int(count) if count.isdecimal() else 0
    return min(MAX_GPUS, max(by_label, int(amount(node.status.capacity, GPU))))


def _gpu_type(node: Node, gpus: int, instance_types: Mapping[str, str]) -> str:
    labels = node.metadata.labels
    if named := labels.get(TYPE_LABEL):
        return named.lower()
    by_instance = instance_types.get(labels.get(INSTANCE_LABEL, ""))
    if by_instance:
        return by_instance
    if gpus or labels.get(PRODUCT_LABEL):
        return type_of(labels.get(PRODUCT_LABEL, "gpu"))
    if _missing_gpus(node, instance_types) is not None:
        return "gpu"
    return "cpu-arm" if labels.get(ARCH_LABEL) == "arm64" else "cpu-x86"


def _features(labels: Mapping[str, str]) -> tuple[str, ...]:
    """Words for --constraint. Not all labels: some differ on every node, and nodes that differ
    cannot be planned as one group."""
    features = {labels[key] for key in FEATURE_LABELS if labels.get(key)}
    features |= {key for key in FEATURE_FLAGS if labels.get(key) == "true"}
    for key, value in labels.items():
        if key.startswith(FEATURE_PREFIX):
            word = key.removeprefix(FEATURE_PREFIX)
            features.add(word if value in ("", "true") else f"{word}-{value}")
    return tuple(sorted(features))


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOffer:
    """The resources of a node that the planner does not assign. A whole-node member gets EFA and
    huge pages in addition to its share."""

    gpus: int
    efa: int
    hugepages_mib: int
    disk_mib: int = 0
    """Its local storage for pods; 0: unknown."""
    own_taints: tuple[str, ...] = ()
    """The keys of its taints with odc's prefix."""
    strict_groups: bool = False
    """Whether it can limit a pod's groups to those of the manifest."""
    user_namespaces: bool = False
    """Whether it can give a pod users of its own."""


def offer_of(node: Node | None) -> NodeOffer:
    offered = node.status.allocatable if node else {}
    return NodeOffer(
        gpus=int(amount(offered, GPU)),
        efa=int(amount(offered, EFA)),
        hugepages_mib=int(amount(offered, HUGEPAGES) / MIB),
        disk_mib=int(amount(offered, DISK) / MIB),
        own_taints=own_taints(node) if node else (),
        strict_groups=node is not None and node_features.has_strict_groups(node),
        user_namespaces=node is not None and node_features.has_user_namespaces(node),
    )
