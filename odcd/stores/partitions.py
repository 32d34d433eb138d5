"""Partitions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime

from odcd.database.pool import Database
from odcd.records.job import Identity
from odcd.stores.actor import actor_of


class PartitionStore:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def list(self) -> str:
        return await self._db.fetchval("select odc.list_partitions()")

    async def create(
        self, who: Identity, name: str, changes: Mapping[str, object], now: datetime
    ) -> str:
        """changes: the argument of odc.edit_partition."""
        return await self._db.fetchval(
            "select odc.create_partition(p_actor => $1::jsonb, p_name => $2, "
            "p_changes => $3::jsonb, p_now => $4)",
            actor_of(who), name, json.dumps(dict(changes)), now,
        )  # fmt: skip

    async def update(
        self, who: Identity, name: str, changes: Mapping[str, object], now: datetime
    ) -> str:
        """changes: the argument of odc.edit_partition."""
        return await self._db.fetchval(
            "select odc.edit_partition(p_actor => $1::jsonb, p_name => $2, p_changes => $3::jsonb, "
            "p_now => $4)",
            actor_of(who), name, json.dumps(dict(changes)), now,
        )  # fmt: skip

    async def delete(self, who: Identity, name: str, now: datetime) -> str:
        return await self._db.fetchval(
            "select odc.delete_partition(p_actor => $1::jsonb, p_name => $2, p_now => $3)",
            actor_of(who), name, now,
        )  # fmt: skip
