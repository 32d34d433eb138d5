"""Objects that operators manage: node states, bookings, licences, partitions and policies."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime

from odcd.database.pool import Database
from odcd.records.job import Identity
from odcd.stores.accounts import actor_of


class ClusterStore:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def set_node_state(
        self, who: Identity, names: Sequence[str], state: str, reason: str | None, now: datetime
    ) -> str:
        """state: UP, DRAIN or DOWN."""
        return await self._db.fetchval(
            "select odc.set_node_state(p_actor => $1::jsonb, p_names => $2, p_state => $3, "
            "p_reason => $4, p_now => $5)",
            actor_of(who), list(names), state, reason, now,
        )  # fmt: skip

    async def bookings(self, who: Identity, now: datetime, *, ended: bool) -> str:
        """A JSON array of the bookings this user may see; with ended, ended bookings are
        included."""
        return await self._db.fetchval(
            "select odc.list_bookings(p_actor => $1::jsonb, p_all => $2, p_now => $3)",
            actor_of(who), ended, now,
        )  # fmt: skip

    async def booking(self, who: Identity, name: str, now: datetime) -> str:
        return await self._db.fetchval(
            "select odc.show_booking(p_actor => $1::jsonb, p_name => $2, p_now => $3)",
            actor_of(who), name, now,
        )  # fmt: skip

    async def make_booking(
        self, who: Identity, ask: Mapping[str, object], key: str | None, digest: str, now: datetime
    ) -> str:
        """ask: the argument of odc._read_booking. digest: identifies the request that used the
        key."""
        return await self._db.fetchval(
            "select odc.create_booking(p_actor => $1::jsonb, p_ask => $2::jsonb, p_key => $3, "
            "p_digest => $4, p_now => $5)",
            actor_of(who), json.dumps(dict(ask)), key, digest, now,
        )  # fmt: skip

    async def edit_booking(
        self, who: Identity, name: str, ask: Mapping[str, object], now: datetime
    ) -> str:
        return await self._db.fetchval(
            "select odc.edit_booking(p_actor => $1::jsonb, p_name => $2, p_ask => $3::jsonb, "
            "p_now => $4)",
            actor_of(who), name, json.dumps(dict(ask)), now,
        )  # fmt: skip

    async def delete_booking(self, who: Identity, name: str, now: datetime) -> str:
        return await self._db.fetchval(
            "select odc.delete_booking(p_actor => $1::jsonb, p_name => $2, p_now => $3)",
            actor_of(who), name, now,
        )  # fmt: skip

    async def licences(self) -> str:
        return await self._db.fetchval("select odc.list_licences()")

    async def set_licence(self, who: Identity, name: str, total: int, now: datetime) -> str:
        return await self._db.fetchval(
            "select odc.set_licence(p_actor => $1::jsonb, p_name => $2, p_total => $3, "
            "p_now => $4)",
            actor_of(who), name, total, now,
        )  # fmt: skip

    async def delete_licence(self, who: Identity, name: str, now: datetime) -> str:
        return await self._db.fetchval(
            "select odc.delete_licence(p_actor => $1::jsonb, p_name => $2, p_now => $3)",
            actor_of(who), name, now,
        )  # fmt: skip

    async def change_partition(
        self, who: Identity, name: str, changes: Mapping[str, object], now: datetime, *, make: bool
    ) -> str:
        """changes: the argument of odc.edit_partition. make: create it; the name must not exist."""
        function = "create_partition" if make else "edit_partition"
        return await self._db.fetchval(
            f"select odc.{function}(p_actor => $1::jsonb, p_name => $2, p_changes => $3::jsonb, "
            "p_now => $4)",
            actor_of(who), name, json.dumps(dict(changes)), now,
        )  # fmt: skip

    async def make_policy(
        self, who: Identity, name: str, like: str | None, terms: Mapping[str, object], now: datetime
    ) -> str:
        return await self._db.fetchval(
            "select odc.create_policy(p_actor => $1::jsonb, p_name => $2, p_like => $3, "
            "p_changes => $4::jsonb, p_now => $5)",
            actor_of(who), name, like, json.dumps(dict(terms)), now,
        )  # fmt: skip

    async def edit_policy(
        self, who: Identity, name: str, changes: Mapping[str, object], now: datetime
    ) -> str:
        return await self._db.fetchval(
            "select odc.edit_policy(p_actor => $1::jsonb, p_name => $2, p_changes => $3::jsonb, "
            "p_now => $4)",
            actor_of(who), name, json.dumps(dict(changes)), now,
        )  # fmt: skip

    async def delete_partition(self, who: Identity, name: str, now: datetime) -> str:
        return await self._db.fetchval(
            "select odc.delete_partition(p_actor => $1::jsonb, p_name => $2, p_now => $3)",
            actor_of(who), name, now,
        )  # fmt: skip

    async def delete_policy(self, who: Identity, name: str, now: datetime) -> str:
        return await self._db.fetchval(
            "select odc.delete_policy(p_actor => $1::jsonb, p_name => $2, p_now => $3)",
            actor_of(who), name, now,
        )  # fmt: skip
