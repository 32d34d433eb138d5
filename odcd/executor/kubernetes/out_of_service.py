"""The taint by which Kubernetes releases the pods and volumes of a node that is certain to be off.

Without it, a volume of a lost node stays attached for at least six minutes, and the pods of
StatefulSets stay until someone removes the node.
"""

from __future__ import annotations

import logging
from typing import Any

import msgspec

from odcd.clock import Clock
from odcd.errors import RunnerDown
from odcd.executor.kubernetes.cluster import ApiRefused, Cluster
from odcd.executor.kubernetes.inventory import is_ready
from odcd.executor.kubernetes.objects import Node

log = logging.getLogger(__name__)

KEY = "node.kubernetes.io/out-of-service"
VALUE = "odc"
"""Only taints with this value are removed: others were set by a person."""
TAINT = {"key": KEY, "value": VALUE, "effect": "NoExecute"}
TRIES, AGAIN_S = 5, 2.0
CONFLICT = 409

Json = dict[str, Any]


def is_tainted(node: Node) -> bool:
    return any(taint.key == KEY and taint.value == VALUE for taint in node.spec.taints)


class OutOfService:
    def __init__(self, cluster: Cluster, clock: Clock) -> None:
        self._cluster = cluster
        self._clock = clock

    async def taint(self, node_name: str) -> None:
        """Taint a node that was powered off, unless it answers again. If the API server refuses,
        this is logged: the jobs of the node do not wait for it."""
        await self._change(node_name, set_it=True)

    async def untaint(self, node_name: str) -> None:
        """Remove the taint from a node that answers again."""
        await self._change(node_name, set_it=False)

    async def _change(self, node_name: str, *, set_it: bool) -> None:
        trouble: object = None
        for number in range(TRIES):
            if number:
                await self._clock.sleep(AGAIN_S)
            try:
                await self._patch(node_name, set_it=set_it)
                return
            except ApiRefused as error:
                trouble = error
                if error.status != CONFLICT and not error.passing:
                    break
            except RunnerDown as error:
                trouble = error.message
        log.warning(
            "kubernetes.not_tainted" if set_it else "kubernetes.not_untainted",
            extra={"node": node_name, "why": str(trouble)},
        )

    async def _patch(self, node_name: str, *, set_it: bool) -> None:
        path = f"/api/v1/nodes/{node_name}"
        body = await self._cluster.get(path)
        node = msgspec.json.decode(body, type=Node)
        if is_tainted(node) is set_it or is_ready(node) is set_it:
            return
        # As they are, with fields that odc does not read.
        taints: list[Json] = msgspec.json.decode(body)["spec"].get("taints", [])
        taints = [one for one in taints if (one["key"], one.get("value")) != (KEY, VALUE)]
        await self._cluster.patch(
            path,
            {
                "metadata": {"resourceVersion": node.metadata.resource_version},
                "spec": {"taints": [*taints, TAINT] if set_it else taints},
            },
        )
        event = "kubernetes.tainted" if set_it else "kubernetes.untainted"
        log.warning(event, extra={"node": node_name, "taint": KEY})
