"""Licences."""

from __future__ import annotations

from datetime import datetime

from odcd.database.pool import Database
from odcd.records.job import Identity
from odcd.stores.actor import actor_of


class LicenceStore:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def list(self) -> str:
        return await self._db.fetchval("select odc.list_licences()")

    async def set(self, who: Identity, name: str, total: int, now: datetime) -> str:
        return await self._db.fetchval(
            "select odc.set_licence(p_actor => $1::jsonb, p_name => $2, p_total => $3, "
            "p_now => $4)",
            actor_of(who), name, total, now,
        )  # fmt: skip

    async def delete(self, who: Identity, name: str, now: datetime) -> str:
        return await self._db.fetchval(
            "select odc.delete_licence(p_actor => $1::jsonb, p_name => $2, p_now => $3)",
            actor_of(who), name, now,
        )  # fmt: skip
