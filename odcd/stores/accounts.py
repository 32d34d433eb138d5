"""Accounts, QOS, users and priority.

Operators and coordinators change them. Every method returns the JSON text that the database wrote.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime

from odcd.database.pool import Database
from odcd.records.job import Identity


class AccountStore:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def accounts(self, name: str | None = None) -> str:
        """Return a JSON array: the named account, or all."""
        return await self._db.fetchval("select odc.list_accounts(p_name => $1)", name)

    async def make_account(
        self, who: Identity, name: str, ask: Mapping[str, object], key: str | None, digest: str,
        now: datetime,
    ) -> str:  # fmt: skip
        """ask: the argument of odc._write_account."""
        return await self._make("create_account", who, name, ask, key, digest, now)

    async def edit_account(
        self, who: Identity, name: str, ask: Mapping[str, object], now: datetime
    ) -> str:
        return await self._edit("edit_account", who, name, ask, now)

    async def delete_account(self, who: Identity, name: str, now: datetime) -> str:
        return await self._db.fetchval(
            "select odc.delete_account(p_actor => $1::jsonb, p_name => $2, p_now => $3)",
            actor_of(who), name, now,
        )  # fmt: skip

    async def qos(self, name: str | None = None) -> str:
        """Return a JSON array: the named QOS, or all."""
        return await self._db.fetchval("select odc.list_qos(p_name => $1)", name)

    async def make_qos(
        self, who: Identity, name: str, ask: Mapping[str, object], key: str | None, digest: str,
        now: datetime,
    ) -> str:  # fmt: skip
        """ask: the argument of odc._write_qos."""
        return await self._make("create_qos", who, name, ask, key, digest, now)

    async def edit_qos(
        self, who: Identity, name: str, ask: Mapping[str, object], now: datetime
    ) -> str:
        return await self._edit("edit_qos", who, name, ask, now)

    async def delete_qos(self, who: Identity, name: str, now: datetime) -> str:
        return await self._db.fetchval(
            "select odc.delete_qos(p_actor => $1::jsonb, p_name => $2, p_now => $3)",
            actor_of(who), name, now,
        )  # fmt: skip

    async def users(self, name: str | None = None) -> str:
        """Return a JSON array: the named user, or all."""
        return await self._db.fetchval("select odc.list_users(p_user => $1)", name)

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

    async def edit_member(
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

    async def priorities(
        self, job_ids: Sequence[int] | None, users: Sequence[str] | None,
        accounts: Sequence[str] | None, partitions: Sequence[str] | None, limit: int,
        now: datetime,
    ) -> str:  # fmt: skip
        return await self._db.fetchval(
            "select odc.list_priorities(p_job_ids => $1, p_users => $2, p_accounts => $3, "
            "p_partitions => $4, p_limit => $5, p_now => $6)",
            job_ids, users, accounts, partitions, limit, now,
        )  # fmt: skip

    async def shares(self, now: datetime) -> str:
        return await self._db.fetchval("select odc.list_shares(p_now => $1)", now)

    async def usage(
        self, by: Sequence[str], filters: Mapping[str, object], since: datetime, until: datetime,
        now: datetime,
    ) -> str:  # fmt: skip
        """by: the columns to group by. filters: keys are user, account, gpu_type, kind; null:
        all."""
        kept = {key: value for key, value in filters.items() if value is not None}
        return await self._db.fetchval(
            "select odc.list_usage(p_by => $1, p_filters => $2::jsonb, p_since => $3, "
            "p_until => $4, p_now => $5)",
            list(by), json.dumps(kept), since, until, now,
        )  # fmt: skip

    async def accounting(self) -> str:
        return await self._db.fetchval("select odc.show_accounting()")

    async def edit_accounting(self, who: Identity, ask: Mapping[str, object], now: datetime) -> str:
        return await self._db.fetchval(
            "select odc.edit_accounting(p_actor => $1::jsonb, p_ask => $2::jsonb, p_now => $3)",
            actor_of(who), json.dumps(dict(ask)), now,
        )  # fmt: skip

    async def _make(
        self, function: str, who: Identity, name: str, ask: Mapping[str, object],
        key: str | None, digest: str, now: datetime,
    ) -> str:  # fmt: skip
        return await self._db.fetchval(
            f"select odc.{function}(p_actor => $1::jsonb, p_name => $2, p_ask => $3::jsonb, "
            "p_key => $4, p_digest => $5, p_now => $6)",
            actor_of(who), name, json.dumps(dict(ask)), key, digest, now,
        )  # fmt: skip

    async def _edit(
        self, function: str, who: Identity, name: str, ask: Mapping[str, object], now: datetime
    ) -> str:
        return await self._db.fetchval(
            f"select odc.{function}(p_actor => $1::jsonb, p_name => $2, p_ask => $3::jsonb, "
            "p_now => $4)",
            actor_of(who), name, json.dumps(dict(ask)), now,
        )  # fmt: skip


def actor_of(who: Identity, **more: object) -> str:
    """The user who makes the request, in the form that SQL functions take."""
    return json.dumps({"user": who.user, "uid": who.uid, "operator": who.operator, **more})
