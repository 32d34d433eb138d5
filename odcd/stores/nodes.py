"""Nodes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

from odcd.database.pool import Database
from odcd.records.job import Identity
from odcd.records.node import NodeReport
from odcd.stores.actor import actor_of


class NodeStore:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def list(self, who: Identity, now: datetime, as_of: datetime | None = None) -> str:
        """who: sees the names of bookings that this user may see; in the past, none are named but
        those for maintenance."""
        if as_of is not None:
            return await self._db.fetchval(
                "select odc.past_nodes(p_as_of => $1, p_now => $2)", as_of, now
            )
        return await self._db.fetchval(
            "select odc.list_nodes(p_now => $1, p_actor => $2::jsonb)", now, actor_of(who)
        )

    async def register(
        self, term: int, nodes: Sequence[NodeReport], now: datetime, *, whole: bool
    ) -> None:
        """Store the node inventory. With whole, a node missing from it goes DOWN."""
        body = [
            {
                "name": n.name, "gpu_type": n.gpu_type, "gpus": n.gpus, "cpus": n.cpus,
                "mem_mib": n.mem_mib, "zone": n.zone, "efa_domain": n.efa_domain,
                "topology": list(n.topology), "features": list(n.features), "declared": n.declared,
                "state": n.state, "reason": n.reason, "foreign_gpus": n.foreign_gpus,
                "foreign_cpus": n.foreign_cpus, "foreign_mem_mib": n.foreign_mem_mib,
                "tmp_mib": n.tmp_mib,
            }
            for n in nodes
        ]  # fmt: skip
        await self._db.execute(
            "select odc.register_nodes(p_term => $1, p_nodes => $2::jsonb, p_whole => $3, "
            "p_now => $4)",
            term, json.dumps(body), whole, now,
        )  # fmt: skip

    async def set_state(
        self, who: Identity, names: Sequence[str], state: str, reason: str | None, now: datetime
    ) -> str:
        """state: UP, DRAIN or DOWN."""
        return await self._db.fetchval(
            "select odc.set_node_state(p_actor => $1::jsonb, p_names => $2, p_state => $3, "
            "p_reason => $4, p_now => $5)",
            actor_of(who), list(names), state, reason, now,
        )  # fmt: skip
