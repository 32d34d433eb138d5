"""Check that the instances of PostgreSQL in the cluster are not all in one zone."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping

from odcd.doctor.examination import Examination
from odcd.doctor.host import Finding
from odcd.executor.kubernetes.inventory import ZONE_LABEL

ABOUT = "database"
SELECTORS: tuple[Mapping[str, str], ...] = (
    {"cnpg.io/cluster": "odc-db"},
    {"app.kubernetes.io/name": "postgresql", "app.kubernetes.io/component": "database"},
)
"""The labels of instances, by component of the manifests."""
NAMESPACE = "gpu-controlplane"


async def examine_zones(x: Examination) -> AsyncIterator[Finding]:
    """Needs the nodes and pods that examine_nodes has read."""
    zones = {
        name: node.metadata.labels[ZONE_LABEL]
        for name, node in x.nodes.items()
        if ZONE_LABEL in node.metadata.labels
    }
    found = Counter(
        zones[pod.spec.node_name]
        for pod in x.cluster_pods
        if pod.metadata.namespace == NAMESPACE
        and pod.spec.node_name in zones
        and any(one.items() <= pod.metadata.labels.items() for one in SELECTORS)
    )
    if found.total() < 2 or len(set(zones.values())) < 2:
        return
    counts = ", ".join(f"{count} in {zone}" for zone, count in sorted(found.items()))
    if len(found) == 1:
        yield Finding(
            about=ABOUT,
            verdict="note",
            text=f"all instances of PostgreSQL are in one zone: {counts}",
            hint="If the zone fails, nothing is scheduled. Move instances one at a time: "
            "docs/operating/cluster-upgrade.md#spread-postgresql-over-zones",
        )
    else:
        yield Finding(about=ABOUT, verdict="ok", text=f"instances of PostgreSQL: {counts}")
