"""Make certain that a node that does not answer runs nothing, before its jobs run elsewhere."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Mapping
from datetime import timedelta
from typing import Protocol

from odcd.clock import Clock
from odcd.errors import OdcError
from odcd.executor.kubernetes.inventory import is_ready
from odcd.executor.kubernetes.objects import Node
from odcd.executor.kubernetes.out_of_service import is_tainted

log = logging.getLogger(__name__)

LOOK_S = 1.0
RETRY_S = 10.0


class Fencer(Protocol):
    async def fence(self, machine: str) -> None:
        """Power the machine off; return when it is certain to be off. machine: its id, as in the
        node's providerID. Raises OdcError if it may still run."""
        ...


class Marks(Protocol):
    """See OutOfService."""

    async def taint(self, node_name: str) -> None: ...
    async def untaint(self, node_name: str) -> None: ...


class Fence:
    def __init__(
        self, nodes: Mapping[str, Node], clock: Clock, fencer: Fencer | None, grace: timedelta,
        marks: Marks | None = None,
    ) -> None:  # fmt: skip
        """fencer: None: nodes are not fenced. grace: how long a node must have been silent. marks:
        taints nodes that were powered off."""
        self._nodes = nodes
        self._clock = clock
        self._fencer = fencer
        self._grace = grace
        self._marks = marks
        self._reopening: set[str] = set()
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def close_off(self, node_name: str) -> None:
        """Return when the node answers, was removed from the cluster, or is certain to be off. A
        node that cannot be fenced is tried again: until then its jobs do not run elsewhere."""
        if self._fencer is None:
            return
        async with self._locks[node_name]:
            while (node := self._silent(node_name)) is not None:
                if not self._is_lost(node):
                    await self._clock.sleep(LOOK_S)
                    continue
                try:
                    await self._fencer.fence(node.spec.provider_id)
                except OdcError as error:
                    log.error(
                        "kubernetes.not_fenced", extra={"node": node_name, "why": error.message}
                    )
                    await self._clock.sleep(RETRY_S)
                    continue
                log.warning("kubernetes.fenced", extra={"node": node_name})
                if self._marks is not None:
                    await self._marks.taint(node_name)
                return

    def must_reopen(self, node: Node | None) -> bool:
        """Whether the node answers again after it was fenced. Then call reopen()."""
        if node is None or self._marks is None or node.metadata.name in self._reopening:
            return False
        return is_ready(node) and is_tainted(node)

    async def reopen(self, node_name: str) -> None:
        assert self._marks is not None
        self._reopening.add(node_name)
        try:
            await self._marks.untaint(node_name)
        finally:
            self._reopening.discard(node_name)

    def _silent(self, node_name: str) -> Node | None:
        node = self._nodes.get(node_name)
        return None if node is None or is_ready(node) else node

    def _is_lost(self, node: Node) -> bool:
        """Whether it has been silent for so long that its jobs are lost."""
        ready = next((c for c in node.status.conditions if c.type == "Ready"), None)
        since = ready.last_transition_time if ready is not None else None
        return since is None or self._clock.now() - since >= self._grace
