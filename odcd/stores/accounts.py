"""Accounts, their members and coordinators."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime

from odcd.database.pool import Database
from odcd.records.job import Identity
from odcd.stores.actor import actor_of


class AccountStore:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def list(self, name: str | None = None) -> str:
        """Return a JSON array: the named account, or all."""
        return await self._db.fetchval("select odc.list_accounts(p_name => $1)", name)

    async def create(
        self, who: Identity, name: str, ask: Mapping[str, object], key: str | None, digest: str,
        now: datetime,
    ) -> str:  # fmt: skip
        """ask: the argument of odc._write_account."""
        return await self._db.fetchval(
            "select odc.create_account(p_actor => $1::jsonb, p_name => $2, p_ask => $3::jsonb, "
            "p_key => $4, p_digest => $5, p_now => $6)",
            actor_of(who), name, json.dumps(dict(ask)), key, digest, now,
        )  # fmt: skip

    async def update(
        self, who: Identity, name: str, ask: Mapping[str, object], now: datetime
    ) -> str:
        return await self._db.fetchval(
            "select odc.edit_account(p_actor => $1::jsonb, p_name => $2, p_ask => $3::jsonb, "
            "p_now => $4)",
            actor_of(who), name, json.dumps(dict(ask)), now,
        )  # fmt: skip

    async def delete(self, who: Identity, name: str, now: datetime) -> str:
        return await self._db.fetchval(
            "select odc.delete_account(p_actor => $1::jsonb, p_name => $2, p_now => $3)",
            actor_of(who), name, now,
        )  # fmt: skip

    async def add_member(
        self, who: Identity, account: str, user: str, uid: int | None, ask: Mapping[str, object],
        key: str | None, digest: str, now: datetime,
    ) -> str:  # fmt: skip
        """ask: the argument of odc.put_member. uid: the user's uid on this machine."""
        return await self._db.fetchval(
            "select odc.put_member(p_actor => $1::jsonb, p_account => $2, p_user => $3, "
            "p_uid => $4, p_new => true, p_ask => $5::jsonb, p_now => $6, p_key => $7, "
            "p_digest => $8)",
            actor_of(who), account, user, uid, json.dumps(dict(ask)), now, key, digest,
        )  # fmt: skip

    async def update_member(
        self, who: Identity, account: str, user: str, uid: int | None, ask: Mapping[str, object],
        now: datetime,
    ) -> str:  # fmt: skip
        return await self._db.fetchval(
            "select odc.put_member(p_actor => $1::jsonb, p_account => $2, p_user => $3, "
            "p_uid => $4, p_new => false, p_ask => $5::jsonb, p_now => $6)",
            actor_of(who), account, user, uid, json.dumps(dict(ask)), now,
        )  # fmt: skip

    async def remove_member(
        self, who: Identity, account: str, user: str, partition: str | None, now: datetime
    ) -> str:
        return await self._db.fetchval(
            "select odc.remove_member(p_actor => $1::jsonb, p_account => $2, p_user => $3, "
            "p_partition => $4, p_now => $5)",
            actor_of(who), account, user, partition, now,
        )  # fmt: skip

    async def set_coordinator(
        self, who: Identity, account: str, user: str, uid: int | None, now: datetime, *, on: bool
    ) -> str:
        return await self._db.fetchval(
            "select odc.set_coordinator(p_actor => $1::jsonb, p_account => $2, p_user => $3, "
            "p_uid => $4, p_on => $5, p_now => $6)",
            actor_of(who), account, user, uid, on, now,
        )  # fmt: skip
