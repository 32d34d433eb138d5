"""Dispatches: what an executor needs to start jobs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from odcd.clock import Turns
from odcd.database.pool import Database
from odcd.records.dispatch import DiskUse, Dispatch, Member


class DispatchStore:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def list(self, term: int, job_ids: Sequence[int] | None) -> list[Dispatch]:
        """The running attempts of these jobs, or of all, with everything an executor needs."""
        rows = await self._db.fetch(
            "select body from odc.dispatches(p_term => $1, p_job_ids => $2)",
            term, None if job_ids is None else list(job_ids),
        )  # fmt: skip
        found: list[Dispatch] = []
        turns = Turns()
        for row in rows:
            # Arguments alone can have megabytes.
            if turns.are_due():
                await turns.take()
            found.append(_dispatch(json.loads(row["body"])))
        return found

    async def get(self, job_id: int, attempt: int | None = None) -> Dispatch | None:
        """The last (or given) attempt of one job, live or ended; None: it never started."""
        body = await self._db.fetchval(
            "select odc.dispatch_of(p_job_id => $1, p_attempt => $2)", job_id, attempt
        )
        return _dispatch(json.loads(body)) if body else None

    async def list_unstarted(self, term: int, before: datetime | None) -> list[int]:
        """Jobs dispatched before that time (None: at any time) with a member that has not started,
        except those that must end."""
        rows = await self._db.fetch(
            "select job_id from odc.unstarted_jobs(p_term => $1, p_before => $2)", term, before
        )
        return [row["job_id"] for row in rows]

    async def get_texts(self, digests: Sequence[str]) -> dict[str, str]:
        rows = await self._db.fetch(
            "select digest, content from odc.job_text where digest = any ($1)", list(digests)
        )
        return {row["digest"]: row["content"] for row in rows}


def _dispatch(body: dict[str, Any]) -> Dispatch:
    members = tuple(_member(part) for part in body.pop("members"))
    for key in ("started_at", "ends_at"):
        body[key] = datetime.fromisoformat(body[key]) if body[key] else None
    disk = body.pop("disk", None)
    fields: dict[str, Any] = {**body, "args": tuple(body["args"]), "members": members}
    return Dispatch(**fields, disk=DiskUse(**disk) if disk else None)


def _member(part: dict[str, Any]) -> Member:
    fields: dict[str, Any] = {**part, "gpu_indexes": tuple(part["gpu_indexes"])}
    return Member(**fields)
