"""Watches the cluster's nodes and pods, checks that it answers, and reports changes that matter to
the planner."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping

from odcd.clock import Clock
from odcd.errors import RunnerDown
from odcd.executor.kubernetes.cluster import ApiRefused, Cluster
from odcd.executor.kubernetes.informer import Mirror
from odcd.executor.kubernetes.inventory import is_daemon, is_over, take_inventory
from odcd.executor.kubernetes.naming import Key, Namespaces, key_of
from odcd.executor.kubernetes.objects import Event, Node, Pod
from odcd.isolation import IsolationWatch
from odcd.records.node import NodeReport

log = logging.getLogger(__name__)

SYNC_S = 30.0
PROBE_S = 3.0


class Watch:
    def __init__(
        self,
        cluster: Cluster,
        namespaces: Namespaces,
        clock: Clock,
        on_pod: Callable[[Key, Pod | None, Pod | None], None],
        on_event: Callable[[Event | None, Event | None], None],
        watch: IsolationWatch | None = None,
    ) -> None:
        """on_pod: called for every change of one of odc's pods, as (key, before, after). on_event:
        called for events of dev servers' pods, as (before, after); nothing depends on these
        events."""
        self._cluster = cluster
        self._namespaces = namespaces
        self._clock = clock
        self._on_own_pod = on_pod
        self.nodes = Mirror(cluster, "/api/v1/nodes", Node, clock, self._on_node, watch)
        self.pods = Mirror(cluster, "/api/v1/pods", Pod, clock, self._on_pod, watch)
        path = f"/api/v1/namespaces/{namespaces.dev}/events"
        self.events = Mirror(cluster, path, Event, clock, on_event, watch)
        self._nodes_changed = asyncio.Event()
        self._silent_since: float | None = None

    def works(self) -> dict[str, Callable[[], Coroutine[object, object, None]]]:
        """The loops that keep the data up to date, by name; they run until cancelled."""
        return {
            "watch-nodes": self.nodes.run, "watch-pods": self.pods.run,
            "watch-events": self.events.run, "probe": self._probe,
        }  # fmt: skip

    async def sync(self) -> None:
        """Wait until everything was read once. Raises RunnerDown when that takes too long."""
        deadline = self._clock.monotonic() + SYNC_S
        while not (self.nodes.synced and self.pods.synced):
            if self._clock.monotonic() > deadline:
                trouble = self.nodes.trouble or self.pods.trouble
                raise RunnerDown(f"nodes and pods cannot be listed: {trouble}")
            await self._clock.sleep(0.02)

    def require(self) -> None:
        """Raises RunnerDown when the data may be outdated."""
        for mirror in (self.nodes, self.pods):
            if mirror.trouble is not None:
                raise RunnerDown(f"the cluster is not being watched: {mirror.trouble}")

    @property
    def unreached_s(self) -> float:
        """See odcd.executor.base."""
        return self._clock.monotonic() - self._silent_since if self._silent_since else 0.0

    async def _probe(self) -> None:
        """Detect a silently dead connection by a short request at regular intervals."""
        while True:
            sent_at = self._clock.monotonic()
            try:
                await self._cluster.get("/version", timeout_s=PROBE_S)
                self._silent_since = None
            except ApiRefused:
                self._silent_since = None
            except RunnerDown:
                self._silent_since = self._silent_since or sent_at
            await self._clock.sleep(PROBE_S)

    def inventory(
        self, instance_types: Mapping[str, str], tolerated: Iterable[str]
    ) -> list[NodeReport]:
        """instance_types: GPU type by the cloud's instance type."""
        taken = take_inventory(
            self.nodes.items.values(),
            self.pods.items.values(),
            lambda pod: self._own(pod) is not None,
            instance_types,
            tolerated,
        )
        for name, why in sorted(taken.left_out.items()):
            log.warning("kubernetes.node_left_out", extra={"node": name, "why": why})
        return taken.nodes

    async def nodes_changed(self) -> None:
        """See odcd.executor.base."""
        await self._nodes_changed.wait()
        self._nodes_changed.clear()

    def _own(self, pod: Pod) -> Key | None:
        return key_of(pod) if pod.metadata.namespace in self._namespaces else None

    def _on_node(self, before: Node | None, after: Node | None) -> None:
        if before is None or after is None or _matters(before) != _matters(after):
            self._nodes_changed.set()

    def _on_pod(self, before: Pod | None, after: Pod | None) -> None:
        pod = after or before
        assert pod is not None
        key = self._own(pod)
        if key is not None:
            self._on_own_pod(key, before, after)
        elif not is_daemon(pod) and _holds(before) != _holds(after):
            self._nodes_changed.set()


def _matters(node: Node) -> tuple[object, ...]:
    """The parts of a node that the inventory depends on; heartbeats do not change them."""
    ready = [(c.status, c.reason) for c in node.status.conditions if c.type == "Ready"]
    return (node.metadata.labels, node.metadata.deletion_timestamp, node.spec,
            node.status.allocatable, ready)  # fmt: skip


def _holds(pod: Pod | None) -> tuple[object, ...] | None:
    """The node of another workload's pod, and the resources it requests there."""
    if pod is None or is_over(pod) or not pod.spec.node_name:
        return None
    return pod.spec.node_name, [c.resources.requests for c in pod.spec.containers]
