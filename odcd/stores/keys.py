"""API keys and logins."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from odcd.database.pool import Database
from odcd.records.api_keys import Ends, NewKey
from odcd.records.job import Identity
from odcd.stores.accounts import actor_of


class KeyStore:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def keep_key(self, who: Identity, key: NewKey, now: datetime, life: timedelta) -> None:
        await self._db.execute(
            "select odc.keep_api_key(p_digest => $1, p_user => $2, p_uid => $3, p_gid => $4, "
            "p_now => $5, p_expires_at => $6, p_prefix => $7)",
            key.digest, who.user, who.uid, who.gid, now, now + life, key.prefix,
        )  # fmt: skip

    async def key_owner(self, digest: str, now: datetime) -> tuple[str, int, int] | None:
        row = await self._db.fetchrow(
            "select user_name, uid, gid from odc.use_api_key(p_digest => $1, p_now => $2)",
            digest, now,
        )  # fmt: skip
        return (row["user_name"], row["uid"], row["gid"]) if row else None

    async def rotate_key(self, old: str, key: NewKey, now: datetime) -> datetime | None:
        """When the new key expires; None when the old key is no longer valid."""
        return await self._db.fetchval(
            "select odc.rotate_api_key(p_old => $1, p_digest => $2, p_prefix => $3, p_now => $4)",
            old, key.digest, key.prefix, now,
        )  # fmt: skip

    async def open_keys(self, digests: Sequence[str]) -> dict[str, Ends]:
        """Those of these keys and sessions that were not revoked."""
        rows = await self._db.fetch(
            "select digest, expires_at, until_at from odc.open_keys(p_digests => $1)", list(digests)
        )
        return {row["digest"]: Ends(row["expires_at"], row["until_at"]) for row in rows}

    async def end_key(self, digest: str, now: datetime) -> bool:
        return await self._db.fetchval(
            "select odc.end_api_key(p_digest => $1, p_now => $2)", digest, now
        )

    async def end_user_keys(self, who: Identity, user: str, now: datetime) -> str:
        """Return JSON {user, keys, page_sessions}: how many were valid. Raises NotOwner."""
        return await self._db.fetchval(
            "select odc.end_user_keys(p_actor => $1::jsonb, p_user => $2, p_now => $3)",
            actor_of(who), user, now,
        )  # fmt: skip

    async def show_key(self, uid: int, digest: str | None, now: datetime) -> str:
        """Return JSON {key, sessions, page_sessions}."""
        return await self._db.fetchval(
            "select odc.show_key(p_uid => $1, p_digest => $2, p_now => $3)", uid, digest, now
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

    async def has_logged_in(self, user: str) -> bool:
        return await self._db.fetchval(
            "select exists (select from odc.login_user where user_name = $1)", user
        )

    async def refuse_login(self, detail: Mapping[str, str], now: datetime) -> None:
        await self._db.execute(
            "select odc.refuse_login(p_detail => $1::jsonb, p_now => $2)",
            json.dumps(dict(detail)), now,
        )  # fmt: skip

    async def member_name(self, uid: int) -> str | None:
        """The name of a user in the accounts, if it is a valid name for a machine account."""
        return await self._db.fetchval(
            "select min(user_name) from odc.association "
            "where uid = $1 and user_name ~ '^[A-Za-z_][A-Za-z0-9._-]{0,99}$'",
            uid,
        )
