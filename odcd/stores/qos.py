"""QOS."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime

from odcd.database.pool import Database
from odcd.records.job import Identity
from odcd.stores.actor import actor_of


class QosStore:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def list(self, name: str | None = None) -> str:
        """Return a JSON array: the named QOS, or all."""
        return await self._db.fetchval("select odc.list_qos(p_name => $1)", name)

    async def create(
        self, who: Identity, name: str, ask: Mapping[str, object], key: str | None, digest: str,
        now: datetime,
    ) -> str:  # fmt: skip
        """ask: the argument of odc._write_qos."""
        return await self._db.fetchval(
            "select odc.create_qos(p_actor => $1::jsonb, p_name => $2, p_ask => $3::jsonb, "
            "p_key => $4, p_digest => $5, p_now => $6)",
            actor_of(who), name, json.dumps(dict(ask)), key, digest, now,
        )  # fmt: skip

    async def update(
        self, who: Identity, name: str, ask: Mapping[str, object], now: datetime
    ) -> str:
        return await self._db.fetchval(
            "select odc.edit_qos(p_actor => $1::jsonb, p_name => $2, p_ask => $3::jsonb, "
            "p_now => $4)",
            actor_of(who), name, json.dumps(dict(ask)), now,
        )  # fmt: skip

    async def delete(self, who: Identity, name: str, now: datetime) -> str:
        return await self._db.fetchval(
            "select odc.delete_qos(p_actor => $1::jsonb, p_name => $2, p_now => $3)",
            actor_of(who), name, now,
        )  # fmt: skip
