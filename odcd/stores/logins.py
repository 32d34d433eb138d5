"""Logins."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime

from odcd.database.pool import Database
from odcd.records.api_keys import NewKey


class LoginStore:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def has_logged_in(self, user: str) -> bool:
        return await self._db.fetchval(
            "select exists (select from odc.login_user where user_name = $1)", user
        )

    async def use_signature(self, digest: str, expires_at: datetime, now: datetime) -> bool:
        return await self._db.fetchval(
            "select odc.use_signature(p_digest => $1, p_expires_at => $2, p_now => $3)",
            digest, expires_at, now,
        )  # fmt: skip

    async def log_in(
        self, user: str, detail: Mapping[str, str], github_user: str | None, own_uid: int,
        key: NewKey, now: datetime, expires_at: datetime, until: datetime,
    ) -> int:  # fmt: skip
        """Return the user's uid. until: the latest end of the key, rotations included. Raises
        LoginRefused."""
        return await self._db.fetchval(
            "select odc.log_in(p_user => $1, p_detail => $2::jsonb, p_github => $3, "
            "p_own_uid => $4, p_digest => $5, p_prefix => $6, p_now => $7, p_expires_at => $8, "
            "p_until_at => $9)",
            user, json.dumps(dict(detail)), github_user, own_uid, key.digest, key.prefix, now,
            expires_at, until,
        )  # fmt: skip

    async def refuse(self, detail: Mapping[str, str], now: datetime) -> None:
        await self._db.execute(
            "select odc.refuse_login(p_detail => $1::jsonb, p_now => $2)",
            json.dumps(dict(detail)), now,
        )  # fmt: skip
