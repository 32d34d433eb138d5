"""Nodes."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime

from odcd.database.pool import Database
from odcd.records.job import Identity
from odcd.records.node import NodeReport
from odcd.stores.actor import actor_of

DeclaredProperties = Mapping[str, object]
"""name, gpu_type, gpus, cpus, mem_mib, zone, efa_domain, topology, features."""


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
        self, term: int, nodes: Sequence[NodeReport], now: datetime, *, whole: bool,
        keep: bool = False,
    ) -> None:  # fmt: skip
        """Store the node inventory. With whole, a node missing from it goes DOWN; with keep, except
        nodes that an operator declared."""
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
            "p_now => $4, p_keep => $5)",
            term, json.dumps(body), whole, now, keep,
        )  # fmt: skip

    async def create(self, who: Identity, node: DeclaredProperties, now: datetime) -> None:
        """Raises NotOwner, BadRequest, WrongState."""
        await self._db.execute(
            "select odc.create_node(p_actor => $1::jsonb, p_ask => $2::jsonb, p_now => $3)",
            actor_of(who), json.dumps(node), now,
        )  # fmt: skip

    async def change(
        self, who: Identity, name: str, changes: DeclaredProperties, now: datetime
    ) -> None:
        """Raises NotOwner, UnknownNode, BadRequest, WrongState."""
        await self._db.execute(
            "select odc.change_node(p_actor => $1::jsonb, p_name => $2, p_ask => $3::jsonb, "
            "p_now => $4)",
            actor_of(who), name, json.dumps(changes), now,
        )  # fmt: skip

    async def delete(self, who: Identity, name: str, now: datetime) -> None:
        """Raises NotOwner, UnknownNode, WrongState."""
        await self._db.execute(
            "select odc.delete_node(p_actor => $1::jsonb, p_name => $2, p_now => $3)",
            actor_of(who), name, now,
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
