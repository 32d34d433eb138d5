"""Output of jobs whose executor keeps no files."""

from __future__ import annotations

from datetime import datetime

from odcd.database.pool import Database


class OutputStore:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def save(
        self, key: tuple[int, int, int], content: bytes, written: int, now: datetime
    ) -> None:
        """key: job, attempt, rank. content: the output, or its beginning and end, compressed by
        zlib."""
        await self._db.execute(
            "select odc.keep_output(p_job_id => $1, p_attempt => $2, p_rank => $3, "
            "p_content => $4, p_written => $5, p_now => $6)",
            *key, content, written, now,
        )  # fmt: skip

    async def get(self, key: tuple[int, int, int]) -> tuple[bytes, int] | None:
        row = await self._db.fetchrow(
            "select content, written from odc.kept_output "
            "where job_id = $1 and attempt = $2 and rank = $3",
            *key,
        )
        return (row["content"], row["written"]) if row else None

    async def is_live(self, job_id: int, attempt: int) -> bool:
        """Whether the attempt holds its nodes."""
        return await self._db.fetchval(
            "select exists (select from odc.running where job_id = $1 and attempt = $2)",
            job_id, attempt,
        )  # fmt: skip
