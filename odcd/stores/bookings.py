"""Bookings."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from datetime import datetime

from odcd.database.pool import Database
from odcd.records.job import Identity
from odcd.stores.actor import actor_of


class BookingStore:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def list(self, who: Identity, now: datetime, *, ended: bool) -> str:
        """A JSON array of the bookings this user may see; with ended, ended bookings are
        included."""
        return await self._db.fetchval(
            "select odc.list_bookings(p_actor => $1::jsonb, p_all => $2, p_now => $3)",
            actor_of(who), ended, now,
        )  # fmt: skip

    async def seen_among(self, who: Identity, ids: Collection[int]) -> set[int]:
        """Those of these bookings, past ones included, that this user may see."""
        rows = await self._db.fetch(
            "select odc.seen_bookings(p_actor => $1::jsonb, p_ids => $2) as id",
            actor_of(who), list(ids),
        )  # fmt: skip
        return {row["id"] for row in rows}

    async def get(self, who: Identity, name: str, now: datetime) -> str:
        return await self._db.fetchval(
            "select odc.show_booking(p_actor => $1::jsonb, p_name => $2, p_now => $3)",
            actor_of(who), name, now,
        )  # fmt: skip

    async def create(
        self, who: Identity, ask: Mapping[str, object], key: str | None, digest: str, now: datetime
    ) -> str:
        """ask: the argument of odc._read_booking. digest: identifies the request that used the
        key."""
        return await self._db.fetchval(
            "select odc.create_booking(p_actor => $1::jsonb, p_ask => $2::jsonb, p_key => $3, "
            "p_digest => $4, p_now => $5)",
            actor_of(who), json.dumps(dict(ask)), key, digest, now,
        )  # fmt: skip

    async def update(
        self, who: Identity, name: str, ask: Mapping[str, object], now: datetime
    ) -> str:
        return await self._db.fetchval(
            "select odc.edit_booking(p_actor => $1::jsonb, p_name => $2, p_ask => $3::jsonb, "
            "p_now => $4)",
            actor_of(who), name, json.dumps(dict(ask)), now,
        )  # fmt: skip

    async def delete(self, who: Identity, name: str, now: datetime) -> str:
        return await self._db.fetchval(
            "select odc.delete_booking(p_actor => $1::jsonb, p_name => $2, p_now => $3)",
            actor_of(who), name, now,
        )  # fmt: skip
