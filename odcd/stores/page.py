"""Queries of the web page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from odcd.database.pool import Database


class MappedNode(NamedTuple):
    """body: JSON, as returned by odc.map_nodes."""

    name: str
    gpu_type: str
    body: str


class QueuePage(NamedTuple):
    """jobs: a JSON array; places: the queue place of each job, or None. The next page starts after
    place, or after a cursor of JobStore.list; both None: this is the last page."""

    jobs: str
    places: Sequence[int | None]
    place: int | None
    after: int | None


class End(NamedTuple):
    """The end of a running job. likely: the predicted end, None if unknown; limit: the end of its
    time limit, None without one."""

    likely: datetime | None
    limit: datetime | None


class PageStore:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def list_nodes(self, now: datetime) -> list[MappedNode]:
        """The users of each GPU, sorted by type and node name."""
        rows = await self._db.fetch(
            "select name, gpu_type, body from odc.map_nodes(p_now => $1)", now
        )
        return [MappedNode(row["name"], row["gpu_type"], row["body"]) for row in rows]

    async def list_choices(self) -> tuple[list[str], list[str]]:
        """The names of all users who have submitted a job, lowest uid first, and the partitions."""
        found = json.loads(await self._db.fetchval("select odc.list_choices()"))
        return found["users"], found["partitions"]

    async def list_queue(
        self, filters: Mapping[str, object], now: datetime, *, place: int | None, after: int | None,
        limit: int, fields: Sequence[str],
    ) -> QueuePage:  # fmt: skip
        """Live jobs: running ones, then pending ones by place, then those without a place. filters:
        the same as for JobStore.list."""
        row = await self._db.fetchrow(
            "select jobs, places, next_place, next from odc.list_queue(p_filters => $1::jsonb, "
            "p_place => $2, p_after => $3, p_limit => $4, p_fields => $5, p_now => $6)",
            json.dumps(filters), place, after, limit, list(fields), now,
        )  # fmt: skip
        return QueuePage(row["jobs"], row["places"] or [], row["next_place"], row["next"])

    async def list_job_events(self, job_id: int, limit: int) -> str:
        """A JSON array of the last events of one job, oldest first."""
        return await self._db.fetchval(
            "select odc.list_job_events(p_job_id => $1, p_limit => $2)", job_id, limit
        )

    async def list_attempts(self, job_id: int) -> str:
        """A JSON array of a job's ended attempts."""
        return await self._db.fetchval("select odc.show_attempts(p_job_id => $1)", job_id)

    async def get_places(self, job_ids: Sequence[int]) -> dict[int, int]:
        """The queue places of the jobs that have one."""
        rows = await self._db.fetch(
            "select job_id, place from odc.list_places(p_job_ids => $1)", list(job_ids)
        )
        return {row["job_id"]: row["place"] for row in rows}

    async def get_end(self, job_id: int, now: datetime) -> End | None:
        """When the job ends; None: it is not running."""
        rows = await self._db.fetch(
            "select likely_end_at, ends_at from odc.show_end(p_job_id => $1, p_now => $2)",
            job_id, now,
        )  # fmt: skip
        return End(rows[0]["likely_end_at"], rows[0]["ends_at"]) if rows else None
