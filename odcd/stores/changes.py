"""Submits, and changes to jobs.

Every change returns one JSON object per job touched: {"job_id", "array_task_id"|null, "outcome":
"cancelled"|…, "code", "message", "hint"}.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime

from odcd.database.pool import Database
from odcd.records.job import Identity, Submitted
from odcd.stores.accounts import actor_of
from odcd.stores.filters import Filters, plain


class ChangeStore:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def submit(
        self, requests: str, digests: Sequence[str], texts: Sequence[str], now: datetime
    ) -> list[list[Submitted]]:
        """Submit many requests in one transaction; return the answers per request, and per job in
        it.

        requests: a JSON array of {uid, gid, user, operator, key, digest, dry_run, jobs: […]}, made
        by odcd.jobs.submission. A request is accepted or rejected as a whole. A rejected one does
        not affect the others.
        """
        rows = await self._db.fetch(
            "select request, job_id, code, message, hint from odc.submit_jobs("
            "p_requests => $1::jsonb, p_digests => $2, p_texts => $3, p_now => $4) "
            "order by request, ord",
            requests, list(digests), list(texts), now,
        )  # fmt: skip
        answers: list[list[Submitted]] = []
        for row in rows:
            while len(answers) <= row["request"]:
                answers.append([])
            answers[row["request"]].append(
                Submitted(
                    job_id=row["job_id"],
                    code=row["code"],
                    message=row["message"],
                    hint=row["hint"],
                )
            )
        return answers

    async def cancel(
        self, who: Identity, filters: Filters, now: datetime, *, signal: int | None = None
    ) -> str:
        """Cancel pending jobs now, and ask running ones to end. With signal, only signal running
        jobs (outcome "signal", with job_id and attempt; the caller then calls the executor)."""
        return await self._change("cancel_jobs", who, filters, now, p_signal=signal)

    async def hold(self, who: Identity, filters: Filters, now: datetime) -> str:
        return await self._change("hold_jobs", who, filters, now)

    async def release(self, who: Identity, filters: Filters, now: datetime) -> str:
        return await self._change("release_jobs", who, filters, now)

    async def requeue(
        self, who: Identity, filters: Filters, now: datetime, *, hold: bool = False
    ) -> str:
        return await self._change("requeue_jobs", who, filters, now, p_hold=hold)

    async def checkpoint(self, who: Identity, filters: Filters, now: datetime) -> str:
        """Record that these running jobs have written a checkpoint."""
        return await self._change("checkpoint_jobs", who, filters, now)

    async def update(
        self, who: Identity, filters: Filters, now: datetime, changes: Mapping[str, object]
    ) -> str:
        """changes: any of time_limit_s, nice, partitions, name, comment, dependency (parsed, with
        its text), array_throttle, begin_at, deadline_at, booking."""
        return await self._change(
            "update_jobs", who, filters, now, p_changes=json.dumps(dict(changes))
        )

    async def _change(
        self, function: str, who: Identity, filters: Filters, now: datetime, **more: object
    ) -> str:
        casts = {"p_changes": "::jsonb", "p_signal": "::integer"}
        extra = "".join(
            f", {name} => ${at}{casts.get(name, '')}" for at, name in enumerate(more, start=4)
        )
        return await self._db.fetchval(
            f"select odc.{function}(p_actor => $1::jsonb, p_filters => $2::jsonb, "
            f"p_now => $3{extra})",
            actor_of(who), json.dumps(plain(filters)), now, *more.values(),
        )  # fmt: skip
