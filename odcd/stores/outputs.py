"""Output of jobs whose executor keeps no files."""

from __future__ import annotations

import zlib
from datetime import datetime

from odcd.database.pool import Database
from odcd.records.output import StoredOutput

GONE = b"odc: this output was deleted: kept output of all jobs together reached its limit\n"
"""Instead of the output."""


class OutputStore:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def save(
        self, key: tuple[int, int, int], content: bytes, written: int, now: datetime,
        through: str | None = None,
    ) -> None:  # fmt: skip
        """key: job, attempt, rank. content: the output, or its beginning and end, compressed by
        zlib. through: see StoredOutput."""
        await self._db.execute(
            "select odc.keep_output(p_job_id => $1, p_attempt => $2, p_rank => $3, "
            "p_content => $4, p_written => $5, p_now => $6, p_through => $7)",
            *key, content, written, now, through,
        )  # fmt: skip

    async def get(self, key: tuple[int, int, int]) -> StoredOutput | None:
        row = await self._db.fetchrow(
            "select content, written, read_through from odc.kept_output "
            "where job_id = $1 and attempt = $2 and rank = $3",
            *key,
        )
        return StoredOutput(row["content"], row["written"], row["read_through"]) if row else None

    async def drop(self, term: int, most_bytes: int) -> int:
        """Replace stored output above this total by a note; return of how many members. Raises
        LeadershipLost."""
        return await self._db.fetchval(
            "select odc.drop_outputs(p_term => $1, p_most_bytes => $2, p_note => $3)",
            term, most_bytes, zlib.compress(GONE),
        )  # fmt: skip

    async def is_live(self, job_id: int, attempt: int) -> bool:
        """Whether the attempt holds its nodes."""
        return await self._db.fetchval(
            "select exists (select from odc.running where job_id = $1 and attempt = $2)",
            job_id, attempt,
        )  # fmt: skip
