"""Changes of many jobs.

A change of many jobs is made in parts, one transaction each, so that starts, ends and other changes
wait for one part only. Each job is changed whole or not at all, and has its own result.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from odcd.database.pool import Database
from odcd.errors import OdcError
from odcd.records.job import Identity
from odcd.stores.actor import actor_of
from odcd.stores.filters import Filters, plain


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A function of odc that changes jobs. The rest: as odc.divide_change takes it."""

    function: str
    place: str | None = None
    apart: bool | None = None
    limit: int = 100
    stored_limit: int | None = None
    """How many bytes the user may add to the database per day; None: any number."""


class Changes:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def make(
        self, change: Change, who: Identity, filters: Filters, now: datetime, **more: object
    ) -> str:
        """At once where it is one part. Else an error after the first part is the answer for all
        jobs that it left unchanged; it is safe to repeat the request then."""
        parts, answers, arrays = await self._parts(change, who, filters)
        if len(parts) <= 1:
            return await self._call(change, who, filters, now, more)
        rest = {k: v for k, v in filters.items() if k not in ("ids", "job_ids", "all")}
        seen = {row["job_id"] for part in parts for row in part}
        error: OdcError | None = None
        for number, part in enumerate(parts):
            if error is None:
                try:
                    answers += json.loads(
                        await self._call(change, who, {**rest, "ids": part}, now, more)
                    )
                    continue
                except OdcError as caught:
                    if number == 0:
                        raise
                    error = caught
            answers += [_left(row["job_id"], error) for row in part]
        if change.place is None and error is None:
            # Meanwhile tasks may have started out of a range whose turn had not come.
            seen |= {answer["job_id"] for answer in answers}
            parts, _, _ = await self._parts(change, who, filters, besides=seen, arrays=arrays)
            for part in parts:
                answers += json.loads(
                    await self._call(change, who, {**rest, "ids": part}, now, more)
                )
        return json.dumps(sorted(answers, key=lambda answer: answer["job_id"]))

    async def _call(
        self, change: Change, who: Identity, filters: Filters, now: datetime,
        more: Mapping[str, object],
    ) -> str:  # fmt: skip
        casts = {"p_changes": "::jsonb", "p_signal": "::integer"}
        extra = "".join(
            f", {name} => ${at}{casts.get(name, '')}" for at, name in enumerate(more, start=4)
        )
        return await self._db.fetchval(
            f"select odc.{change.function}(p_actor => $1::jsonb, p_filters => $2::jsonb, "
            f"p_now => $3{extra})",
            actor_of(who, stored_limit=change.stored_limit), json.dumps(plain(filters)), now,
            *more.values(),
        )  # fmt: skip

    async def _parts(
        self,
        change: Change,
        who: Identity,
        filters: Filters,
        *,
        besides: Collection[int] | None = None,
        arrays: Collection[int] = (),
    ) -> tuple[list[list[dict[str, Any]]], list[dict[str, Any]], set[int]]:
        """Selectors of rows, part by part; the answers of those refused; the arrays among them.
        With besides: only rows that are not among them, of these arrays, that have not ended."""
        rows = await self._db.fetch(
            "select part, job_id, array_job_id, tasks, place, answer from odc.divide_change("
            "p_actor => $1::jsonb, p_filters => $2::jsonb, p_place => $3, p_apart => $4, "
            "p_most => $5)",
            actor_of(who), json.dumps(plain(filters)), change.place, change.apart, change.limit,
        )  # fmt: skip
        if besides is not None:
            rows = [
                row
                for row in rows
                if row["job_id"] not in besides
                and row["array_job_id"] in arrays
                and row["place"] in ("pending", "running")
            ]
        parts: dict[int, list[dict[str, Any]]] = {}
        for row in rows:
            if row["part"] is not None:
                one = {"job_id": row["job_id"], "tasks": row["tasks"], "alone": True}
                parts.setdefault(row["part"], []).append(one)
        answers = [json.loads(row["answer"]) for row in rows if row["answer"] is not None]
        found = {row["array_job_id"] for row in rows if row["array_job_id"] is not None}
        return list(parts.values()), answers, found


def _left(job_id: int, error: OdcError) -> dict[str, Any]:
    """The answer for a job that an error left as it was."""
    return {
        "job_id": job_id, "array_task_id": None, "outcome": "refused", "code": error.code,
        "message": error.message, "hint": error.hint,
    }  # fmt: skip
