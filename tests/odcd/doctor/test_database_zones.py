"""`odcd doctor` reports a database that one zone could take down."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import msgspec

from odcd.builds.settings import BuildSettings
from odcd.doctor.database_zones import examine_zones
from odcd.doctor.examination import Examination, Templates
from odcd.doctor.host import Finding
from odcd.executor.kubernetes.objects import Node, Pod
from odcd.executor.kubernetes.settings import KubernetesSettings
from odcd.executor.kubernetes.template import PodTemplate

CNPG = {"cnpg.io/cluster": "odc-db"}
PLAIN = {"app.kubernetes.io/name": "postgresql", "app.kubernetes.io/component": "database"}
ZONE = "topology.kubernetes.io/zone"


def findings(zones: dict[str, str], pods: list[str], labels: dict[str, str]) -> list[Finding]:
    """zones: by node. pods: the node of each instance."""
    x = Examination(
        cast("Any", None), KubernetesSettings(),
        Templates(jobs=PodTemplate(), dev_servers=None), 30, BuildSettings(),
    )  # fmt: skip
    x.nodes = {
        name: msgspec.convert(
            {"metadata": {"name": name, "labels": {ZONE: zone} if zone else {}}}, Node
        )
        for name, zone in zones.items()
    }
    x.cluster_pods = [
        msgspec.convert(
            {
                "metadata": {"name": f"p{n}", "namespace": "gpu-controlplane", "labels": labels},
                "spec": {"nodeName": node},
            },
            Pod,
        )
        for n, node in enumerate(pods)
    ]

    async def all_of() -> list[Finding]:
        return [one async for one in examine_zones(x)]

    return asyncio.run(all_of())


def test_instances_in_one_of_several_zones_are_reported() -> None:
    for labels in (CNPG, PLAIN):
        zones = {"n1": "a", "n2": "a", "n3": "b"}
        [found] = findings(zones, ["n1", "n2"], labels)
        assert (found.verdict, "2 in a" in found.text) == ("note", True)
        [found] = findings(zones, ["n1", "n3"], labels)
        assert (found.verdict, "1 in a, 1 in b" in found.text) == ("ok", True)


def test_without_zones_or_instances_there_is_nothing_to_report() -> None:
    assert findings({"n1": "a", "n2": "a"}, ["n1", "n2"], CNPG) == []
    assert findings({"n1": "", "n2": ""}, ["n1", "n2"], CNPG) == []
    assert findings({"n1": "a", "n2": "b"}, ["n1", "n2"], {"app": "other"}) == []
