"""The database's functions for disks, as methods."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from odcd.database.pool import Database
from odcd.records.job import Identity
from odcd.stores.accounts import actor_of

Kind = Literal["volume", "snapshot", "storage"]
Verb = Literal["create", "look", "publish", "withdraw", "detach", "label", "delete"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskWork:
    """A step that is due for a disk: see odc.take_disk_work."""

    kind: Kind
    id: int
    """The id of its row; for storage, the uid of its user."""
    verb: Verb
    operation: str
    cloud_id: str | None
    volume_cloud_id: str | None
    snapshot_cloud_id: str | None
    zone: str | None
    size_gib: int | None
    uid: int
    tags: Mapping[str, str]


class DiskStore:
    _db: Database

    async def server_id(self) -> str:
        """The id of this odc installation; it lasts as long as the database."""
        return await self._db.fetchval("select id::text from odc.server")

    async def disk_work(self, term: int, now: datetime) -> list[DiskWork]:
        """Raises LeadershipLost."""
        rows = await self._db.fetch(
            "select kind, id, verb, operation, cloud_id, volume_cloud_id, snapshot_cloud_id, zone, "
            "size_gib, uid, tags from odc.take_disk_work(p_term => $1, p_now => $2)",
            term, now,
        )  # fmt: skip
        return [DiskWork(**{**dict(row), "tags": json.loads(row["tags"])}) for row in rows]

    async def next_disk_work(self) -> datetime | None:
        return await self._db.fetchval("select odc.next_disk_work()")

    async def note_disk_work(
        self, term: int, work: DiskWork, answer: Mapping[str, object], now: datetime
    ) -> None:
        """answer: as odc.note_volume takes it. Raises LeadershipLost."""
        args = (term, work.id, work.verb, json.dumps(dict(answer)), now)
        if work.kind == "volume":
            await self._db.fetchval(
                "select odc.note_volume(p_term => $1, p_id => $2, p_verb => $3, "
                "p_answer => $4::jsonb, p_now => $5)",
                *args,
            )
        elif work.kind == "snapshot":
            await self._db.fetchval(
                "select odc.note_snapshot(p_term => $1, p_id => $2, p_verb => $3, "
                "p_answer => $4::jsonb, p_now => $5)",
                *args,
            )
        else:
            await self._db.fetchval(
                "select odc.note_storage(p_term => $1, p_uid => $2::integer, p_verb => $3, "
                "p_answer => $4::jsonb, p_now => $5)",
                *args,
            )

    async def note_contents(
        self, term: int, job_id: int, attempt: int, contents: str | None, used_bytes: int | None
    ) -> None:
        """Record the contents of the disk of an attempt. Raises LeadershipLost."""
        await self._db.fetchval(
            "select odc.note_contents(p_term => $1, p_job_id => $2, p_attempt => $3, "
            "p_contents => $4, p_used_bytes => $5)",
            term, job_id, attempt, contents, used_bytes,
        )  # fmt: skip

    async def reconcile_disks(
        self, term: int, volumes: Sequence[Mapping[str, object]],
        snapshots: Sequence[Mapping[str, object]], listed_at: datetime, now: datetime,
    ) -> int | None:  # fmt: skip
        """Return how many orphans the cloud has; None: the listing was not trusted."""
        return await self._db.fetchval(
            "select odc.reconcile_disks(p_term => $1, p_volumes => $2::jsonb, "
            "p_snapshots => $3::jsonb, p_listed_at => $4, p_now => $5)",
            term, json.dumps([dict(one) for one in volumes]),
            json.dumps([dict(one) for one in snapshots]), listed_at, now,
        )  # fmt: skip

    # -- requests of users and operators: each raises NotOwner, UnknownDisk, DiskDeleted -----------

    async def disks(self, who: Identity, user: str | None, now: datetime) -> str:
        """Return a JSON array. user: the owner, or "all"; None: the caller."""
        return await self._db.fetchval(
            "select odc.list_disks(p_actor => $1::jsonb, p_user => $2, p_now => $3)",
            actor_of(who), user, now,
        )  # fmt: skip

    async def disk_strays(self, who: Identity) -> str:
        """Return the orphans as a JSON array."""
        return await self._db.fetchval(
            "select odc.list_strays(p_actor => $1::jsonb)", actor_of(who)
        )

    async def disk(self, who: Identity, user: str | None, name: str, now: datetime) -> str:
        return await self._db.fetchval(
            "select odc.show_disk(p_actor => $1::jsonb, p_user => $2, p_name => $3, p_now => $4)",
            actor_of(who), user, name, now,
        )  # fmt: skip

    async def disk_contents(self, who: Identity, user: str | None, name: str, now: datetime) -> str:
        return await self._db.fetchval(
            "select odc.show_contents(p_actor => $1::jsonb, p_user => $2, p_name => $3, "
            "p_now => $4)",
            actor_of(who), user, name, now,
        )  # fmt: skip

    async def create_disk(
        self, who: Identity, name: str, size_gib: int, now: datetime, *, key: str | None,
        digest: str,
    ) -> str:  # fmt: skip
        """Raises BadRequest, InUse, KeyReused."""
        return await self._db.fetchval(
            "select odc.create_disk(p_actor => $1::jsonb, p_name => $2, p_size_gib => $3, "
            "p_now => $4, p_key => $5, p_digest => $6)",
            actor_of(who), name, size_gib, now, key, digest,
        )  # fmt: skip

    async def delete_disk(self, who: Identity, user: str | None, name: str, now: datetime) -> str:
        """Raises InUse."""
        return await self._db.fetchval(
            "select odc.delete_disk(p_actor => $1::jsonb, p_user => $2, p_name => $3, p_now => $4)",
            actor_of(who), user, name, now,
        )  # fmt: skip

    async def rename_disk(
        self, who: Identity, user: str | None, name: str, new_name: str, now: datetime
    ) -> str:
        """Raises BadRequest, InUse."""
        return await self._db.fetchval(
            "select odc.rename_disk(p_actor => $1::jsonb, p_user => $2, p_name => $3, "
            "p_new_name => $4, p_now => $5)",
            actor_of(who), user, name, new_name, now,
        )  # fmt: skip

    async def clone_disk(
        self, who: Identity, user: str | None, name: str, new_user: str | None, new_name: str,
        now: datetime,
    ) -> str:  # fmt: skip
        """Raises BadRequest, InUse, WrongState, UnknownUser."""
        return await self._db.fetchval(
            "select odc.clone_disk(p_actor => $1::jsonb, p_user => $2, p_name => $3, "
            "p_new_user => $4, p_new_name => $5, p_now => $6)",
            actor_of(who), user, name, new_user, new_name, now,
        )  # fmt: skip

    async def unlock_disk(self, who: Identity, user: str | None, name: str, now: datetime) -> str:
        """Raises InUse."""
        return await self._db.fetchval(
            "select odc.unlock_disk(p_actor => $1::jsonb, p_user => $2, p_name => $3, p_now => $4)",
            actor_of(who), user, name, now,
        )  # fmt: skip
