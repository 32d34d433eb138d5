"""GPU types: their sizes, and how many GPUs of each are free."""

from __future__ import annotations

from datetime import datetime

from odcd.database.pool import Database
from odcd.records.job import Identity
from odcd.records.node import GpuTypeSize
from odcd.stores.actor import actor_of


class GpuTypeStore:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def get_sizes(self) -> dict[str, GpuTypeSize]:
        rows = await self._db.fetch(
            "select name, gpus_per_node, cpus_per_node, mem_per_node_mib from odc.gpu_type"
        )
        return {
            row["name"]: GpuTypeSize(
                gpus=row["gpus_per_node"],
                cpus=row["cpus_per_node"],
                mem_mib=row["mem_per_node_mib"],
            )
            for row in rows
        }

    async def get_instance_types(self) -> dict[str, str]:
        """GPU types by the cloud's instance type."""
        rows = await self._db.fetch(
            "select name, instance_type from odc.gpu_type where instance_type is not null"
        )
        return {row["instance_type"]: row["name"] for row in rows}

    async def list_availability(self, who: Identity, now: datetime) -> str:
        """The availability of each GPU type that nodes have, as a JSON array."""
        return await self._db.fetchval(
            "select odc.list_availability(p_now => $1, p_actor => $2::jsonb)", now, actor_of(who)
        )

    async def list_fragmentation(self) -> str:
        """How free GPUs are spread over the nodes, per type."""
        return await self._db.fetchval("select odc.list_fragmentation()")
