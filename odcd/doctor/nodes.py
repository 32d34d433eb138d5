"""Check which nodes of a Kubernetes cluster can run jobs, and what they offer."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator

import msgspec

from odcd.doctor.examination import Examination
from odcd.doctor.host import Finding
from odcd.executor.kubernetes import naming
from odcd.executor.kubernetes.inventory import offer_of, take_inventory
from odcd.executor.kubernetes.objects import GPU, Node, Object, Pod, amount
from odcd.executor.kubernetes.shares import EFA_HUGEPAGES_MIB

PAGE = 5000


class _Nodes(Object):
    items: list[Node]


class _Pods(Object):
    items: list[Pod]


async def examine_nodes(x: Examination) -> AsyncIterator[Finding]:
    """Take the inventory and report the nodes that can run jobs, and problems of each node."""
    nodes = msgspec.json.decode(
        await x.cluster.get("/api/v1/nodes", [("limit", PAGE)]), type=_Nodes
    ).items
    pods = msgspec.json.decode(
        await x.cluster.get("/api/v1/pods", [("limit", PAGE)]), type=_Pods
    ).items
    x.cluster_pods = pods
    x.nodes = {node.metadata.name: node for node in nodes}
    x.inventory = take_inventory(
        nodes, pods, lambda pod: naming.key_of(pod) is not None, {}, x.pods.terms
    )
    taken = x.inventory.nodes
    if not taken:
        yield Finding(
            about="nodes",
            verdict="bad",
            text=f"none of the cluster's {len(nodes)} nodes can run jobs",
            hint="Control-plane nodes and those labelled odc.dev/ignore are left out.",
        )
    else:
        kinds = Counter((n.gpu_type, n.gpus) for n in taken)
        counts = ", ".join(f"{c} x {t} with {g} GPUs" for (t, g), c in sorted(kinds.items()))
        yield Finding(about="nodes", verdict="ok", text=counts)
    for name, why in sorted(x.inventory.left_out.items()):
        yield Finding(about="node", verdict="note", text=f"{name} is left out: {why}")
    for state, verdict in (("DOWN", "down"), ("DRAIN", "accepts no jobs")):
        for node in [n for n in taken if n.state == state][:20]:
            yield Finding(
                about="node", verdict="note", text=f"{node.name} {verdict}: {node.reason}"
            )
    for node in taken:
        for finding in _resources(x.nodes[node.name]):
            yield finding


def _resources(node: Node) -> Iterator[Finding]:
    """Problems with the GPUs and huge pages that a node offers to pods."""
    if node.metadata.labels.get("nvidia.com/gpu.present") == "true" and not amount(
        node.status.allocatable, GPU
    ):
        yield Finding(
            about="node",
            verdict="note",
            text=f"{node.metadata.name} has GPUs but offers none to pods",
            hint="Check that NVIDIA's device plugin runs there.",
        )
    offer = offer_of(node)
    if offer.efa and offer.hugepages_mib < EFA_HUGEPAGES_MIB:
        yield Finding(
            about="node",
            verdict="note",
            text=f"{node.metadata.name} has EFA and {offer.hugepages_mib} MiB of huge pages; jobs "
            f"get none below {EFA_HUGEPAGES_MIB}",
            hint="Reserve 5128 pages of 2 MiB before kubelet starts.",
        )
