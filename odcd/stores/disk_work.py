"""Steps of the leader's disk worker."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from odcd.database.pool import Database

Kind = Literal["volume", "snapshot", "storage", "import"]
Verb = Literal[
    "create", "look", "publish", "withdraw", "detach", "label", "delete", "adopt", "save", "list",
]  # fmt: skip


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


class DiskWorkStore:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def take(self, term: int, now: datetime) -> list[DiskWork]:
        """Raises LeadershipLost."""
        rows = await self._db.fetch(
            "select kind, id, verb, operation, cloud_id, volume_cloud_id, snapshot_cloud_id, zone, "
            "size_gib, uid, tags from odc.take_disk_work(p_term => $1, p_now => $2)",
            term, now,
        )  # fmt: skip
        return [DiskWork(**{**dict(row), "tags": json.loads(row["tags"])}) for row in rows]

    async def get_next_time(self) -> datetime | None:
        return await self._db.fetchval("select odc.next_disk_work()")

    async def record(
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
        elif work.kind == "import":
            await self._db.fetchval(
                "select odc.note_import(p_term => $1, p_id => $2, p_answer => $3::jsonb, "
                "p_now => $4)",
                term, work.id, json.dumps(dict(answer)), now,
            )  # fmt: skip
        else:
            await self._db.fetchval(
                "select odc.note_storage(p_term => $1, p_uid => $2::integer, p_verb => $3, "
                "p_answer => $4::jsonb, p_now => $5)",
                *args,
            )

    async def record_contents(
        self, term: int, job_id: int, attempt: int, contents: str | None, used_bytes: int | None
    ) -> None:
        """Record the contents of the disk of an attempt. Raises LeadershipLost."""
        await self._db.fetchval(
            "select odc.note_contents(p_term => $1, p_job_id => $2, p_attempt => $3, "
            "p_contents => $4, p_used_bytes => $5)",
            term, job_id, attempt, contents, used_bytes,
        )  # fmt: skip

    async def reconcile(
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
