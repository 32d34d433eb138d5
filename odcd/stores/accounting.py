"""Usage, shares and priorities, and the settings that they depend on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime

from odcd.database.pool import Database
from odcd.records.job import Identity
from odcd.stores.actor import actor_of


class AccountingStore:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def get(self) -> str:
        return await self._db.fetchval("select odc.show_accounting()")

    async def update(self, who: Identity, ask: Mapping[str, object], now: datetime) -> str:
        return await self._db.fetchval(
            "select odc.edit_accounting(p_actor => $1::jsonb, p_ask => $2::jsonb, p_now => $3)",
            actor_of(who), json.dumps(dict(ask)), now,
        )  # fmt: skip

    async def list_priorities(
        self, job_ids: Sequence[int] | None, users: Sequence[str] | None,
        accounts: Sequence[str] | None, partitions: Sequence[str] | None, limit: int,
        now: datetime,
    ) -> str:  # fmt: skip
        return await self._db.fetchval(
            "select odc.list_priorities(p_job_ids => $1, p_users => $2, p_accounts => $3, "
            "p_partitions => $4, p_limit => $5, p_now => $6)",
            job_ids, users, accounts, partitions, limit, now,
        )  # fmt: skip

    async def list_shares(self, now: datetime) -> str:
        return await self._db.fetchval("select odc.list_shares(p_now => $1)", now)

    async def list_usage(
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
