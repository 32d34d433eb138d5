"""API keys."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from odcd.database.pool import Database
from odcd.records.api_keys import Ends, NewKey
from odcd.records.job import Identity
from odcd.stores.actor import actor_of


class KeyStore:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def create(self, who: Identity, key: NewKey, now: datetime, life: timedelta) -> None:
        await self._db.execute(
            "select odc.keep_api_key(p_digest => $1, p_user => $2, p_uid => $3, p_gid => $4, "
            "p_now => $5, p_expires_at => $6, p_prefix => $7)",
            key.digest, who.user, who.uid, who.gid, now, now + life, key.prefix,
        )  # fmt: skip

    async def get_owner(self, digest: str, now: datetime) -> tuple[str, int, int] | None:
        row = await self._db.fetchrow(
            "select user_name, uid, gid from odc.use_api_key(p_digest => $1, p_now => $2)",
            digest, now,
        )  # fmt: skip
        return (row["user_name"], row["uid"], row["gid"]) if row else None

    async def list_open(self, digests: Sequence[str]) -> dict[str, Ends]:
        """Those of these keys and sessions that were not revoked."""
        rows = await self._db.fetch(
            "select digest, expires_at, until_at from odc.open_keys(p_digests => $1)", list(digests)
        )
        return {row["digest"]: Ends(row["expires_at"], row["until_at"]) for row in rows}

    async def get(self, uid: int, digest: str | None, now: datetime) -> str:
        """Return JSON {key, sessions, page_sessions}."""
        return await self._db.fetchval(
            "select odc.show_key(p_uid => $1, p_digest => $2, p_now => $3)", uid, digest, now
        )

    async def rotate(self, old: str, key: NewKey, now: datetime) -> datetime | None:
        """When the new key expires; None when the old key is no longer valid."""
        return await self._db.fetchval(
            "select odc.rotate_api_key(p_old => $1, p_digest => $2, p_prefix => $3, p_now => $4)",
            old, key.digest, key.prefix, now,
        )  # fmt: skip

    async def end(self, digest: str, now: datetime) -> bool:
        return await self._db.fetchval(
            "select odc.end_api_key(p_digest => $1, p_now => $2)", digest, now
        )

    async def list_valid(self, user: str | None, now: datetime) -> str:
        """Return JSON [{user, uid, prefix, made_at, expires_at, ...}]. user: None for all."""
        return await self._db.fetchval(
            "select odc.list_api_keys(p_user => $1, p_now => $2)", user, now
        )

    async def revoke(self, who: Identity, prefix: str, now: datetime) -> str:
        """Return JSON {user, prefix, expires_at}. Raises WrongState: none or several match."""
        return await self._db.fetchval(
            "select odc.revoke_api_key(p_actor => $1::jsonb, p_prefix => $2, p_now => $3)",
            actor_of(who), prefix, now,
        )  # fmt: skip

    async def end_all(self, who: Identity, user: str, now: datetime) -> str:
        """Return JSON {user, keys, page_sessions}: how many were valid. Raises NotOwner."""
        return await self._db.fetchval(
            "select odc.end_user_keys(p_actor => $1::jsonb, p_user => $2, p_now => $3)",
            actor_of(who), user, now,
        )  # fmt: skip
