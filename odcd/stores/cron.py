"""Recurring jobs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from odcd.database.pool import Database
from odcd.records.cron import CronOutcome, DueCron
from odcd.records.job import Identity
from odcd.stores.actor import actor_of


class CronStore:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def show(self, who: Identity, user: str | None) -> str:
        return await self._db.fetchval(
            "select odc.show_cron(p_actor => $1::jsonb, p_user => $2)", actor_of(who), user
        )

    async def put(self, who: Identity, content: str, zone: str, entries: str, now: datetime) -> str:
        """entries: a JSON array, see odc.put_cron. Raises BadRequest: a zone does not exist."""
        return await self._db.fetchval(
            "select odc.put_cron(p_actor => $1::jsonb, p_gid => $2, p_content => $3, "
            "p_zone => $4, p_entries => $5::jsonb, p_now => $6)",
            actor_of(who), who.gid, content, zone, entries, now,
        )  # fmt: skip

    async def remove(self, who: Identity, user: str | None, now: datetime) -> str:
        return await self._db.fetchval(
            "select odc.remove_cron(p_actor => $1::jsonb, p_user => $2, p_now => $3)",
            actor_of(who), user, now,
        )  # fmt: skip

    async def disable(self, who: Identity, job_ids: Sequence[int], now: datetime) -> list[int]:
        """Disable the entries whose last jobs these are; return the jobs of those disabled now."""
        return await self._db.fetchval(
            "select odc.disable_cron(p_actor => $1::jsonb, p_job_ids => $2, p_now => $3)",
            actor_of(who), list(job_ids), now,
        )  # fmt: skip

    # -- the leader -------------------------------------------------------------------------------

    async def due(self, limit: int, now: datetime) -> list[DueCron]:
        rows = await self._db.fetch(
            "select * from odc.due_crons(p_limit => $1, p_now => $2)", limit, now
        )
        return [DueCron(**row) for row in rows]

    async def run(
        self, term: int, due: DueCron, request: str | None, digests: Sequence[str],
        texts: Sequence[str], refusal: tuple[str, str] | None, now: datetime,
    ) -> CronOutcome | None:  # fmt: skip
        """Submit or skip one occurrence and advance its entry, in one transaction. refusal: the
        code and message of a request that was refused before. None: it was done before, or is not
        to be done. Raises LeadershipLost."""
        code, message = refusal or (None, None)
        answer = await self._db.fetchval(
            "select odc.run_cron(p_term => $1, p_id => $2, p_due_at => $3, "
            "p_request => $4::jsonb, p_digests => $5, p_texts => $6, p_code => $7, "
            "p_message => $8, p_now => $9)",
            term, due.id, due.due_at, request, list(digests), list(texts), code, message, now,
        )  # fmt: skip
        return None if answer is None else msgspec.json.decode(answer, type=CronOutcome)
