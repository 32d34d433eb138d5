"""Users, and their GitHub names."""

from __future__ import annotations

from datetime import datetime

from odcd.database.pool import Database
from odcd.records.job import Identity
from odcd.stores.actor import actor_of


class UserStore:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def list(self, name: str | None = None) -> str:
        """Return a JSON array: the named user, or all."""
        return await self._db.fetchval("select odc.list_users(p_user => $1)", name)

    async def get_name(self, uid: int) -> str | None:
        """The name of a user in the accounts, if it is a valid name for a machine account."""
        return await self._db.fetchval(
            "select min(user_name) from odc.association "
            "where uid = $1 and user_name ~ '^[A-Za-z_][A-Za-z0-9._-]{0,99}$'",
            uid,
        )

    async def get_github_user(self, uid: int) -> str | None:
        """The GitHub name that the user set, or None."""
        return await self._db.fetchval(
            "select github_user from odc.user_setting where uid = $1", uid
        )

    async def set_github_user(self, who: Identity, name: str | None, now: datetime) -> str:
        return await self._db.fetchval(
            "select odc.set_github_user(p_actor => $1::jsonb, p_github_user => $2, p_now => $3)",
            actor_of(who), name, now,
        )  # fmt: skip
