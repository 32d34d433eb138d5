"""Submits, changes to jobs, and queries about them.

Queries return JSON text unless they say otherwise. Every change returns one JSON object per job
touched: {"job_id", "array_task_id"|null, "outcome": "cancelled"|…, "code", "message", "hint"}.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from odcd.database.pool import Database
from odcd.records.job import Identity, Selector, Submitted
from odcd.records.requested import Requested, requested_of
from odcd.stores.actor import actor_of
from odcd.stores.changes import Change, Changes
from odcd.stores.filters import Filters, plain

_CANCEL = Change(function="cancel_jobs", apart=False)
_SIGNAL = Change(function="cancel_jobs")
_HOLD = Change(function="hold_jobs", place="pending", apart=True)
_RELEASE = Change(function="release_jobs", place="pending", apart=True)
_REQUEUE = Change(function="requeue_jobs", place="running")
_CHECKPOINT = Change(function="checkpoint_jobs", place="running")
_UPDATE = Change(function="update_jobs", apart=True, limit=20)
"""An update checks each job by itself: it costs five times as much."""
_DEPEND = Change(function="update_jobs", apart=True, limit=5)
"""A singleton looks at all live jobs of its user."""


class JobStore:
    def __init__(self, database: Database) -> None:
        self._db = database
        self._changes = Changes(database)

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
        return await self._changes.make(
            _CANCEL if signal is None else _SIGNAL, who, filters, now, p_signal=signal
        )

    async def hold(
        self, who: Identity, filters: Filters, now: datetime, *, stored_bytes: int | None = None
    ) -> str:
        """stored_bytes: as for update()."""
        return await self._changes.make(_counted(_HOLD, who, stored_bytes), who, filters, now)

    async def release(
        self, who: Identity, filters: Filters, now: datetime, *, stored_bytes: int | None = None
    ) -> str:
        """stored_bytes: as for update()."""
        return await self._changes.make(_counted(_RELEASE, who, stored_bytes), who, filters, now)

    async def requeue(
        self, who: Identity, filters: Filters, now: datetime, *, hold: bool = False,
        stored_bytes: int | None = None,
    ) -> str:  # fmt: skip
        """stored_bytes: as for update()."""
        change = _counted(_REQUEUE, who, stored_bytes)
        return await self._changes.make(change, who, filters, now, p_hold=hold)

    async def get_ended_request(self, who: Identity, selector: Selector) -> dict[str, Any]:
        """The request of a job that has ended: see odc.ended_request. Raises UnknownJob,
        WrongState, NotOwner."""
        body = await self._db.fetchval(
            "select odc.ended_request(p_actor => $1, p_selector => $2)",
            actor_of(who), json.dumps(plain({"ids": [selector]})["ids"][0]),
        )  # fmt: skip
        return json.loads(body)

    async def checkpoint(
        self, who: Identity, filters: Filters, now: datetime, *, stored_bytes: int | None = None
    ) -> str:
        """Record that these running jobs have written a checkpoint. stored_bytes: as for
        update()."""
        return await self._changes.make(_counted(_CHECKPOINT, who, stored_bytes), who, filters, now)

    async def update(
        self, who: Identity, filters: Filters, now: datetime, changes: Mapping[str, object],
        *, stored_bytes: int | None = None,
    ) -> str:  # fmt: skip
        """changes: any of time_limit_s, nice, partitions, name, comment, dependency (parsed, with
        its text), array_throttle, begin_at, deadline_at, booking. stored_bytes: how much the user
        may add to the database per day; operators may add any amount."""
        change = _counted(_DEPEND if changes.get("dependency") else _UPDATE, who, stored_bytes)
        return await self._changes.make(
            change, who, filters, now, p_changes=json.dumps(dict(changes))
        )

    async def list(
        self, filters: Filters, now: datetime, *, ended: bool, after: int | None, limit: int,
        fields: Sequence[str] | None = None, as_of: datetime | None = None,
    ) -> tuple[str, int | None]:  # fmt: skip
        """A page of jobs as a JSON array, and the cursor of the next page.

        Live jobs (running, then pending in queue order); with ended, all jobs, newest first.
        fields: return only these keys. as_of: show the state at that time, in every method that
        takes it. Raises BadRequest if that time is in the future, or before the recorded history.
        """
        row = await self._db.fetchrow(
            f"select jobs, next from odc.{'list_jobs' if as_of is None else 'past_jobs'}("
            "p_filters => $1::jsonb, p_ended => $2, p_after => $3, p_limit => $4, p_fields => $5, "
            f"p_now => $6{'' if as_of is None else ', p_as_of => $7'})",
            json.dumps(plain(filters)), ended, after, limit, list(fields) if fields else None, now,
            *([] if as_of is None else [as_of]),
        )  # fmt: skip
        return row["jobs"], row["next"]

    async def list_requests(self, job_ids: Sequence[int]) -> dict[int, Requested]:
        """The requests of these jobs beside their size, by job."""
        rows = await self._db.fetch("select * from odc.list_requests(p_ids => $1)", list(job_ids))
        return {row["job_id"]: requested_of(dict(row)) for row in rows}

    async def list_rows(
        self, selector: Selector, now: datetime, as_of: datetime | None = None, *,
        after: int | None = None, limit: int = 1000,
    ) -> tuple[str, int | None]:  # fmt: skip
        """A page of the job, or of all rows of the array (its waiting range and elements), oldest
        first, as a JSON array; and the cursor of the next page."""
        if as_of is not None:
            row = await self._db.fetchrow(
                "select jobs, next from odc.past_page(p_as_of => $1, p_job_id => $2, "
                "p_tasks => $3::text::int4multirange, p_after => $4, p_limit => $5, p_now => $6)",
                as_of, selector.job_id, selector.tasks, after, limit, now,
            )  # fmt: skip
        else:
            row = await self._db.fetchrow(
                "select jobs, next from odc.show_page(p_job_id => $1, "
                "p_tasks => $2::text::int4multirange, p_after => $3, p_limit => $4, p_now => $5)",
                selector.job_id, selector.tasks, after, limit, now,
            )  # fmt: skip
        return row["jobs"], row["next"]

    async def explain(self, job_id: int, who: Identity | None, now: datetime) -> str:
        """{"job_id","state","reason","planned_start_at","eta","why":[…]} of one job. who: sees the
        names of bookings that this user may see; None: a view for all users."""
        return await self._db.fetchval(
            "select odc.explain_job(p_job_id => $1, p_now => $2, p_actor => $3::jsonb)",
            job_id, now, None if who is None else actor_of(who),
        )  # fmt: skip

    async def explain_past(self, selector: Selector, as_of: datetime, now: datetime) -> str:
        """The answer of explain() at that time, for the job or the one task that a selector
        names."""
        return await self._db.fetchval(
            "select odc.past_why(p_as_of => $1, p_job_id => $2, "
            "p_tasks => $3::text::int4multirange, p_now => $4)",
            as_of, selector.job_id, selector.tasks, now,
        )  # fmt: skip

    async def list_never_met(self, job_ids: Sequence[int]) -> list[tuple[int, str]]:
        """Of these jobs, those whose dependencies can never be met, at most 20, and why."""
        rows = await self._db.fetch("select * from odc.list_never_met(p_job_ids => $1)", job_ids)
        return [(row["job_id"], row["text"]) for row in rows]

    async def get_owner(self, job_id: int) -> tuple[int, str] | None:
        row = await self._db.fetchrow("select uid, user_name from odc.job where id = $1", job_id)
        return (row["uid"], row["user_name"]) if row else None

    async def resolve(self, selector: Selector) -> list[int]:
        """The ids of the jobs that a selector names (started elements, and the row of the waiting
        range)."""
        rows = await self._db.fetch(
            "select job_id from odc.resolve_jobs(p_job_id => $1, "
            "p_tasks => $2::text::int4multirange)",
            selector.job_id, selector.tasks,
        )  # fmt: skip
        return [row["job_id"] for row in rows]

    async def get_next_id(self) -> int:
        """The id that the next job will probably get."""
        return await self._db.fetchval(
            "select last_value + case when is_called then 1 else 0 end from odc.job_id_seq"
        )

    async def list_leaders(self, ids: Sequence[int]) -> dict[int, int]:
        """Of these ids, those of components that name no job: each with its heterogeneous job."""
        rows = await self._db.fetch(
            "select c.id, odc._leader_of(c.id) as leader from unnest($1::bigint[]) as c (id) "
            "where not exists (select from odc.job as j where j.id = c.id)",
            list(ids),
        )
        return {row["id"]: row["leader"] for row in rows if row["leader"] is not None}

    async def is_array(self, job_id: int) -> bool:
        """Whether this is the id of an array, which its last task has too."""
        return bool(
            await self._db.fetchval("select array_job_id = id from odc.job where id = $1", job_id)
        )

    async def list_tasks(self, selector: Selector) -> list[int]:
        """The ids of the array's selected tasks that have started, by the number of the task."""
        rows = await self._db.fetch(
            "select id from odc.job where array_job_id = $1 and array_task_id is not null "
            "and ($2::text is null or array_task_id <@ $2::text::int4multirange) "
            "order by array_task_id",
            selector.job_id, selector.tasks,
        )  # fmt: skip
        return [row["id"] for row in rows]

    async def list_without_files(self, job_ids: Sequence[int]) -> list[int]:
        """Those of these jobs whose output goes to a terminal or is kept by the executor, not to
        files. On Kubernetes these are all jobs that named no file."""
        rows = await self._db.fetch(
            "select id from odc.job where id = any ($1) "
            "and ((options ->> 'spool_output')::boolean or (options ->> 'pty')::boolean "
            "or stdout is null "
            "and exists (select from odc.local_host where machine_id like 'kubernetes:%'))",
            list(job_ids),
        )
        return [row["id"] for row in rows]

    async def get_script(self, job_id: int) -> str | None:
        return await self._db.fetchval(
            "select t.content from odc.job as j "
            "join odc.job_text as t on t.digest = j.script_digest where j.id = $1",
            job_id,
        )


def _counted(change: Change, who: Identity, stored_bytes: int | None) -> Change:
    return change if who.operator else replace(change, stored_limit=stored_bytes)
