"""Disks, in the role of users and operators.

Methods that name a disk raise NotOwner, UnknownDisk, DiskDeleted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime

from odcd.database.pool import Database
from odcd.records.job import Identity
from odcd.stores.actor import actor_of


class DiskStore:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def list(self, who: Identity, user: str | None, now: datetime) -> str:
        """Return a JSON array. user: the owner, or "all"; None: the caller."""
        return await self._db.fetchval(
            "select odc.list_disks(p_actor => $1::jsonb, p_user => $2, p_now => $3)",
            actor_of(who), user, now,
        )  # fmt: skip

    async def list_orphans(self, who: Identity) -> str:
        """Return the orphans as a JSON array."""
        return await self._db.fetchval(
            "select odc.list_strays(p_actor => $1::jsonb)", actor_of(who)
        )

    async def get(self, who: Identity, user: str | None, name: str, now: datetime) -> str:
        return await self._db.fetchval(
            "select odc.show_disk(p_actor => $1::jsonb, p_user => $2, p_name => $3, p_now => $4)",
            actor_of(who), user, name, now,
        )  # fmt: skip

    async def get_contents(self, who: Identity, user: str | None, name: str, now: datetime) -> str:
        return await self._db.fetchval(
            "select odc.show_contents(p_actor => $1::jsonb, p_user => $2, p_name => $3, "
            "p_now => $4)",
            actor_of(who), user, name, now,
        )  # fmt: skip

    async def create(
        self, who: Identity, name: str, size_gib: int, now: datetime, *, key: str | None,
        digest: str,
    ) -> str:  # fmt: skip
        """Raises BadRequest, InUse, KeyReused."""
        return await self._db.fetchval(
            "select odc.create_disk(p_actor => $1::jsonb, p_name => $2, p_size_gib => $3, "
            "p_now => $4, p_key => $5, p_digest => $6)",
            actor_of(who), name, size_gib, now, key, digest,
        )  # fmt: skip

    async def delete(self, who: Identity, user: str | None, name: str, now: datetime) -> str:
        """Raises InUse."""
        return await self._db.fetchval(
            "select odc.delete_disk(p_actor => $1::jsonb, p_user => $2, p_name => $3, p_now => $4)",
            actor_of(who), user, name, now,
        )  # fmt: skip

    async def rename(
        self, who: Identity, user: str | None, name: str, new_name: str, now: datetime
    ) -> str:
        """Raises BadRequest, InUse."""
        return await self._db.fetchval(
            "select odc.rename_disk(p_actor => $1::jsonb, p_user => $2, p_name => $3, "
            "p_new_name => $4, p_now => $5)",
            actor_of(who), user, name, new_name, now,
        )  # fmt: skip

    async def clone(
        self, who: Identity, user: str | None, name: str, new_user: str | None, new_name: str,
        now: datetime,
    ) -> str:  # fmt: skip
        """Raises BadRequest, InUse, WrongState, UnknownUser."""
        return await self._db.fetchval(
            "select odc.clone_disk(p_actor => $1::jsonb, p_user => $2, p_name => $3, "
            "p_new_user => $4, p_new_name => $5, p_now => $6)",
            actor_of(who), user, name, new_user, new_name, now,
        )  # fmt: skip

    async def request_import(
        self, who: Identity, owners: Mapping[str, str], users: Sequence[str] | None,
        tags: Mapping[str, str], now: datetime, *, applies: bool,
    ) -> str:  # fmt: skip
        """Ask the leader for gpu-dev's disks. owners: gpu-dev's user to odc's; users: only these
        of gpu-dev. Raises NotOwner, UnknownUser."""
        return await self._db.fetchval(
            "select odc.request_import(p_actor => $1::jsonb, p_owners => $2::jsonb, "
            "p_users => $3, p_tags => $4::jsonb, p_applies => $5, p_now => $6)",
            actor_of(who), json.dumps(dict(owners)), users and list(users),
            json.dumps(dict(tags)), applies, now,
        )  # fmt: skip

    async def get_import(self, who: Identity, import_id: int) -> str:
        return await self._db.fetchval(
            "select odc.show_import(p_actor => $1::jsonb, p_id => $2)", actor_of(who), import_id
        )

    async def unlock(self, who: Identity, user: str | None, name: str, now: datetime) -> str:
        """Raises InUse."""
        return await self._db.fetchval(
            "select odc.unlock_disk(p_actor => $1::jsonb, p_user => $2, p_name => $3, p_now => $4)",
            actor_of(who), user, name, now,
        )  # fmt: skip
