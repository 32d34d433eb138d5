"""Canaries: tests of quarantined nodes."""

from __future__ import annotations

from datetime import datetime

from odcd.database.pool import Database
from odcd.records.node import Canary, CanaryEnd


class CanaryStore:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def take(self, term: int, now: datetime) -> list[Canary]:
        """The canaries that should be on their nodes now; starts those that are due."""
        rows = await self._db.fetch(
            "select number, node, gpu_type, gpus, cpus, mem_mib, until "
            "from odc.take_canaries(p_term => $1, p_now => $2)",
            term, now,
        )  # fmt: skip
        return [Canary(**row) for row in rows]

    async def end(self, term: int, end: CanaryEnd, now: datetime) -> None:
        await self._db.execute(
            "select odc.end_canary(p_term => $1, p_number => $2, p_passed => $3, p_told => $4, "
            "p_now => $5)",
            term, end.number, end.passed, end.output, now,
        )  # fmt: skip
