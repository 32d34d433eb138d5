"""Submits, and changes to jobs.

A change of many jobs is made in parts, one transaction each, so that starts, ends and other changes
wait for one part only. Each job is changed whole or not at all, and has its own result.

Every change returns one JSON object per job touched: {"job_id", "array_task_id"|null, "outcome":
"cancelled"|…, "code", "message", "hint"}.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from odcd.database.pool import Database
from odcd.errors import OdcError
from odcd.records.job import Identity, Submitted
from odcd.stores.accounts import actor_of
from odcd.stores.filters import Filters, plain


@dataclass(frozen=True, slots=True, kw_only=True)
class _Change:
    """A function of odc that changes jobs. The rest: as odc.divide_change takes it."""

    function: str
    place: str | None = None
    apart: bool | None = None
    most: int = 100


_CANCEL = _Change(function="cancel_jobs", apart=False)
_SIGNAL = _Change(function="cancel_jobs")
_HOLD = _Change(function="hold_jobs", place="pending", apart=True)
_RELEASE = _Change(function="release_jobs", place="pending", apart=True)
_REQUEUE = _Change(function="requeue_jobs", place="running")
_CHECKPOINT = _Change(function="checkpoint_jobs", place="running")
_UPDATE = _Change(function="update_jobs", apart=True, most=20)
"""An update checks each job by itself: it costs five times as much."""
_DEPEND = _Change(function="update_jobs", apart=True, most=5)
"""A singleton looks at all live jobs of its user."""


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
        return await self._change(
            _CANCEL if signal is None else _SIGNAL, who, filters, now, p_signal=signal
        )

    async def hold(self, who: Identity, filters: Filters, now: datetime) -> str:
        return await self._change(_HOLD, who, filters, now)

    async def release(self, who: Identity, filters: Filters, now: datetime) -> str:
        return await self._change(_RELEASE, who, filters, now)

    async def requeue(
        self, who: Identity, filters: Filters, now: datetime, *, hold: bool = False
    ) -> str:
        return await self._change(_REQUEUE, who, filters, now, p_hold=hold)

    async def checkpoint(self, who: Identity, filters: Filters, now: datetime) -> str:
        """Record that these running jobs have written a checkpoint."""
        return await self._change(_CHECKPOINT, who, filters, now)

    async def update(
        self, who: Identity, filters: Filters, now: datetime, changes: Mapping[str, object],
        *, stored_bytes: int | None = None,
    ) -> str:  # fmt: skip
        """changes: any of time_limit_s, nice, partitions, name, comment, dependency (parsed, with
        its text), array_throttle, begin_at, deadline_at, booking. stored_bytes: what a user may add
        to the database per day; operators have no limit."""
        change = _DEPEND if changes.get("dependency") else _UPDATE
        limit = {} if who.operator or stored_bytes is None else {"stored_limit": stored_bytes}
        return await self._change(
            change, who, filters, now, actor=actor_of(who, **limit),
            p_changes=json.dumps(dict(changes)),
        )  # fmt: skip

    async def _change(
        self, change: _Change, who: Identity, filters: Filters, now: datetime,
        actor: str | None = None, **more: object,
    ) -> str:  # fmt: skip
        """At once where it is one part. Else an error after the first part is the answer for all
        jobs that it left unchanged; it is safe to repeat the request then. actor: who, and more."""
        actor = actor or actor_of(who)
        parts, answers, arrays = await self._parts(change, who, filters)
        if len(parts) <= 1:
            return await self._call(change, actor, filters, now, more)
        rest = {k: v for k, v in filters.items() if k not in ("ids", "job_ids", "all")}
        seen = {row["job_id"] for part in parts for row in part}
        error: OdcError | None = None
        for number, part in enumerate(parts):
            if error is None:
                try:
                    answers += json.loads(
                        await self._call(change, actor, {**rest, "ids": part}, now, more)
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
                    await self._call(change, actor, {**rest, "ids": part}, now, more)
                )
        return json.dumps(sorted(answers, key=lambda answer: answer["job_id"]))

    async def _call(
        self, change: _Change, actor: str, filters: Filters, now: datetime,
        more: Mapping[str, object],
    ) -> str:  # fmt: skip
        casts = {"p_changes": "::jsonb", "p_signal": "::integer"}
        extra = "".join(
            f", {name} => ${at}{casts.get(name, '')}" for at, name in enumerate(more, start=4)
        )
        return await self._db.fetchval(
            f"select odc.{change.function}(p_actor => $1::jsonb, p_filters => $2::jsonb, "
            f"p_now => $3{extra})",
            actor, json.dumps(plain(filters)), now, *more.values(),
        )  # fmt: skip

    async def _parts(
        self,
        change: _Change,
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
            actor_of(who), json.dumps(plain(filters)), change.place, change.apart, change.most,
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
