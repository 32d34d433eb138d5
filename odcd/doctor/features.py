"""Report what a cluster lacks, and what works less well for it."""

from __future__ import annotations

from collections.abc import AsyncIterator

from odcd.doctor.examination import Examination
from odcd.doctor.host import Finding
from odcd.executor.kubernetes.cluster import ApiRefused
from odcd.executor.kubernetes.degradations import find_degradations


async def examine_features(x: Examination) -> AsyncIterator[Finding]:
    """Needs the nodes that examine_nodes has read."""
    try:
        found = await find_degradations(x.cluster, x.pods, x.nodes.values())
    except ApiRefused as error:
        if "only odcd makes" not in error.message:
            raise
        yield Finding(
            about="features",
            verdict="note",
            text="not tried: only odcd's own account may create pods",
        )
        return
    for one in found:
        yield Finding(
            about="features",
            verdict="note",
            text=f"{one.lacks}: missing, so {one.effect}"
            if one.lacks.startswith("the ")
            else f"missing on {one.lacks}; {one.effect}",
            hint="docs/operating/kubernetes.md#features-of-nodes-and-clusters",
        )
    if not found:
        yield Finding(about="features", verdict="ok", text="the cluster and all nodes have them")
