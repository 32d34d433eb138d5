"""Change the number of nodes of elastic groups. Runs on the leader only; the database decides.

Each step is stored before AWS or the cluster is asked, so a daemon that is killed between two steps
loses nothing: the next leader repeats the request. See sql/functions/cluster/elastic/README.md.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import timedelta

from odcd.clock import Clock
from odcd.disks.cloud import CloudBusy, CloudRefused
from odcd.elastic.groups import ElasticCloud, ElasticNodes
from odcd.errors import RunnerDown
from odcd.executor.kubernetes.cluster import ApiRefused
from odcd.isolation import Isolation
from odcd.loops.rounds import RoundMetrics, Rounds
from odcd.records.elastic import ElasticGroup, ElasticNode
from odcd.stores.elastic import ElasticStore, LeavingNode

log = logging.getLogger(__name__)

SETTLE_S = 5.0
"""How long a node is closed until its pods are counted: the cluster's scheduler may have placed one
just before."""


class Elastic(Rounds):
    name = "elastic"

    def __init__(
        self, term: int, store: ElasticStore, cloud: ElasticCloud, cluster: ElasticNodes,
        clock: Clock, every: timedelta, *, leads: Callable[[], bool] = lambda: True,
        metrics: RoundMetrics | None = None, settle_s: float = SETTLE_S,
    ) -> None:  # fmt: skip
        """leads: whether no other daemon can be the leader yet."""
        super().__init__(clock, every, metrics)
        self._term = term
        self._store = store
        self._cloud = cloud
        self._cluster = cluster
        self._leads = leads
        self._settle_s = settle_s
        self._ignored: dict[str, str] = {}
        self._closed_s: dict[str, float] = {}
        self._isolation = Isolation[str](self.name, clock, metrics)

    async def run_once(self) -> float | None:
        if not self._leads():
            return None
        try:
            groups = await self._cloud.groups()
            nodes = await self._cluster.nodes()
        except (CloudBusy, CloudRefused, RunnerDown, ApiRefused) as error:
            log.warning("elastic.not_listed", extra={"why": str(error)})
            return None
        await self._see(groups, nodes)
        for group, size in (await self._store.grow(self._term, self._clock.now())).items():
            log.info("elastic.nodes_needed", extra={"group": group, "size": size})
        for group, size in (await self._store.take_sizes(self._term)).items():
            await self._isolation.one(group, self._resize(group, size))
        for node in await self._store.shrink(self._term, self._clock.now()):
            log.info("elastic.node_empty", extra={"node": node})
        waits = await self._remove_all(nodes)
        return self._settle_s if waits else None

    async def _see(self, groups: Sequence[ElasticGroup], nodes: Sequence[ElasticNode]) -> None:
        ignored = await self._store.see(
            self._term,
            [{**asdict(g), "failed_at": g.failed_at and g.failed_at.isoformat()} for g in groups],
            [{"name": node.name, "instance_id": node.instance_id} for node in nodes],
            self._clock.now(),
        )
        for name, problem in ignored.items():
            if self._ignored.get(name) != problem:
                log.error("elastic.group_ignored", extra={"group": name, "why": problem})
        self._ignored = ignored

    async def _resize(self, group: str, size: int) -> None:
        if not self._leads():
            return
        failure = None
        try:
            await self._cloud.resize(group, size)
        except CloudBusy as error:
            # The size stays in the database: the next round asks again.
            log.warning("elastic.not_resized", extra={"group": group, "why": error.message})
            return
        except CloudRefused as error:
            failure = str(error)
            log.error("elastic.not_resized", extra={"group": group, "why": failure})
        await self._store.record_size(self._term, group, size, failure, self._clock.now())

    async def _remove_all(self, nodes: Sequence[ElasticNode]) -> bool:
        """Remove the nodes that leave; return whether one of them only has to stay closed a little
        longer."""
        leaving = await self._store.list_leaving(self._term, self._clock.now())
        closed = {node.name for node in nodes if node.closed}
        for name in sorted(closed - {one.node for one in leaving}):
            # It stays, or the daemon was killed after it had decided that.
            await self._isolation.one(name, self._reopen(name))
        self._closed_s = {
            one.node: self._closed_s[one.node] for one in leaving if one.node in self._closed_s
        }
        waits = False
        for one in leaving:
            waits |= await self._remove_apart(one)
        return waits

    async def _remove_apart(self, one: LeavingNode) -> bool:
        waits = False

        async def remove() -> None:
            nonlocal waits
            waits = await self._remove(one)

        await self._isolation.one(one.node, remove())
        return waits

    async def _reopen(self, name: str) -> None:
        try:
            await self._cluster.reopen(name)
        except (RunnerDown, ApiRefused) as error:
            log.warning("elastic.not_reopened", extra={"node": name, "why": str(error)})

    async def _remove(self, one: LeavingNode) -> bool:
        """Return whether it has to stay closed a little longer."""
        try:
            pods = await self._pods(one)
        except (RunnerDown, ApiRefused) as error:
            if isinstance(error, ApiRefused) and not error.passing:
                await self._keep(one, f"the cluster refused: {error.message}")
            else:
                log.warning("elastic.not_closed", extra={"node": one.node, "why": str(error)})
            return False
        if pods is None:
            return True
        if pods:
            await self._keep(one, f"pod {pods[0]} is on it")
            return False
        now = self._clock.now()
        if not await self._store.confirm_removal(self._term, one.instance_id, now):
            await self._reopen(one.node)
            return False
        if self._leads():
            await self._terminate(one)
        return False

    async def _pods(self, one: LeavingNode) -> list[str] | None:
        """Pods on a node that has been closed for long enough; None: it has not."""
        if one.node not in self._closed_s:
            await self._cluster.close_off(one.node)
            self._closed_s[one.node] = self._clock.monotonic()
        if self._clock.monotonic() - self._closed_s[one.node] < self._settle_s:
            return None
        return await self._cluster.pods(one.node)

    async def _terminate(self, one: LeavingNode) -> None:
        facts = {"node": one.node, "instance": one.instance_id, "group": one.group_name}
        try:
            await self._cloud.terminate(one.instance_id)
        except CloudBusy as error:
            # It may have been done: the node stays closed, and the next round asks again.
            log.warning("elastic.not_removed", extra={**facts, "why": error.message})
            return
        except CloudRefused as error:
            await self._keep(one, str(error))
            return
        log.info("elastic.removed", extra=facts)
        await self._store.record_removal(self._term, one.instance_id, None, self._clock.now())

    async def _keep(self, one: LeavingNode, why: str) -> None:
        log.warning("elastic.node_kept", extra={"node": one.node, "why": why})
        await self._store.record_removal(self._term, one.instance_id, why, self._clock.now())
        self._closed_s.pop(one.node, None)
        await self._reopen(one.node)
