"""Events, and the ends that they announce."""

from __future__ import annotations

from collections.abc import Sequence

from odcd.database.pool import Database
from odcd.records.job import Selector


class EventStore:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def list(
        self, after: int, limit: int, job_id: int | None = None
    ) -> list[tuple[int, str]]:
        """Events above an id, oldest first, as (id, JSON text). Events that an open transaction may
        still precede are left out, so that a reader never misses one."""
        rows = await self._db.fetch(
            "select id, body from odc.events_after(p_after => $1, p_limit => $2, p_job_id => $3)",
            after, limit, job_id,
        )  # fmt: skip
        return [(row["id"], row["body"]) for row in rows]

    async def get_last(self) -> int:
        """The newest event that list() would return now; 0 when there is none."""
        return await self._db.fetchval("select odc.last_event()")

    async def list_settled(self, job_ids: Sequence[int]) -> list[int]:
        """Those of these jobs, and arrays as a whole, that have nothing live left."""
        rows = await self._db.fetch(
            "select job_id from odc.settled_among(p_job_ids => $1)", list(job_ids)
        )
        return [row["job_id"] for row in rows]

    async def get_results(self, selector: Selector) -> str | None:
        """Null while any selected job is live; else a JSON array of
        {"id","array_task_id","state","exit_code","signal"} of every selected job."""
        return await self._db.fetchval(
            "select odc.ended_jobs(p_job_id => $1, p_tasks => $2::text::int4multirange)",
            selector.job_id, selector.tasks,
        )  # fmt: skip
