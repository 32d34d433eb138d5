"""Nodes of elastic groups: the instance of each, and a taint that keeps pods off a node that is
to be removed."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from odcd.executor.kubernetes.cluster import ApiRefused, Cluster
from odcd.executor.kubernetes.inventory import is_daemon, is_over
from odcd.executor.kubernetes.objects import Node, Object, Pod
from odcd.records.elastic import ElasticNode

KEY = "elastic.odc.dev/removing"
"""Not of the prefix that jobs tolerate."""
TAINT = {"key": KEY, "value": "odc", "effect": "NoSchedule"}
NOT_FOUND = 404
_PROVIDER = re.compile(r"aws:///[a-z0-9-]+/(i-[0-9a-f]{8,40})", re.ASCII)

Json = dict[str, Any]


class _Nodes(Object):
    items: list[Node]


class _Pods(Object):
    items: list[Pod]


class KubernetesElasticNodes:
    """Implements odcd.elastic.groups.ElasticNodes. It asks the API server itself: a watch may be
    behind."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    async def nodes(self) -> list[ElasticNode]:
        listed = msgspec.json.decode(await self._cluster.get("/api/v1/nodes"), type=_Nodes)
        return [
            ElasticNode(
                name=node.metadata.name,
                instance_id=found[1],
                closed=any(taint.key == KEY for taint in node.spec.taints),
            )
            for node in listed.items
            if (found := _PROVIDER.fullmatch(node.spec.provider_id))
        ]

    async def close_off(self, name: str) -> None:
        await self._taint(name, [TAINT])

    async def reopen(self, name: str) -> None:
        await self._taint(name, [])

    async def _taint(self, name: str, ours: list[Json]) -> None:
        path = f"/api/v1/nodes/{name}"
        try:
            body = await self._cluster.get(path)
        except ApiRefused as error:
            if error.status == NOT_FOUND:
                return
            raise
        node: Json = msgspec.json.decode(body)
        before: list[Json] = node["spec"].get("taints", [])
        after = [*(one for one in before if one["key"] != KEY), *ours]
        if [one["key"] for one in before] == [one["key"] for one in after]:
            return
        version = node["metadata"]["resourceVersion"]
        await self._cluster.patch(
            path, {"metadata": {"resourceVersion": version}, "spec": {"taints": after}}
        )

    async def pods(self, name: str) -> list[str]:
        query = (("fieldSelector", f"spec.nodeName={name}"),)
        listed = msgspec.json.decode(await self._cluster.get("/api/v1/pods", query), type=_Pods)
        return [pod.key for pod in listed.items if not is_daemon(pod) and not is_over(pod)]
