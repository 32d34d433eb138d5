"""Reads for users. Every method returns JSON text unless it says otherwise."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

from odcd.database.pool import Database
from odcd.records.job import Selector
from odcd.stores.filters import Filters, plain


class QueryStore:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def list_jobs(
        self, filters: Filters, now: datetime, *, ended: bool, after: int | None, limit: int,
        fields: Sequence[str] | None = None, as_of: datetime | None = None,
    ) -> tuple[str, int | None]:  # fmt: skip
        """A page of jobs as a JSON array, and the cursor of the next page.

        Live jobs (running, then pending in queue order); with ended, all jobs, newest first.
        fields: only these keys. as_of: as they were then, here and below; BadRequest when that is
        to come, or before the past is known.
        """
        row = await self._db.fetchrow(
            f"select jobs, next from odc.{'list_jobs' if as_of is None else 'past_jobs'}("
            "p_filters => $1::jsonb, p_ended => $2, p_after => $3, p_limit => $4, p_fields => $5, "
            f"p_now => $6{'' if as_of is None else ', p_as_of => $7'})",
            json.dumps(plain(filters)), ended, after, limit, list(fields) if fields else None, now,
            *([] if as_of is None else [as_of]),
        )  # fmt: skip
        return row["jobs"], row["next"]

    async def show_page(
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

    async def explain(self, job_id: int, now: datetime) -> str:
        """{"job_id","state","reason","planned_start_at","eta","why":[…]} of one job."""
        return await self._db.fetchval(
            "select odc.explain_job(p_job_id => $1, p_now => $2)", job_id, now
        )

    async def explain_past(self, selector: Selector, as_of: datetime, now: datetime) -> str:
        """explain(), as it answered then, of the job or the one task that a selector names."""
        return await self._db.fetchval(
            "select odc.past_why(p_as_of => $1, p_job_id => $2, "
            "p_tasks => $3::text::int4multirange, p_now => $4)",
            as_of, selector.job_id, selector.tasks, now,
        )  # fmt: skip

    async def preview(self, jobs: str, now: datetime) -> str:
        """Where and when each of these jobs (of a request of submit(), as JSON) would start if it
        alone were submitted now, and whom it would delay."""
        return await self._db.fetchval(
            "select odc.preview_jobs(p_asks => $1::jsonb, p_now => $2)", jobs, now
        )

    async def plan(self, now: datetime, as_of: datetime | None = None) -> str:
        """The planned starts, the first one first."""
        if as_of is not None:
            return await self._db.fetchval(
                "select odc.past_plan(p_as_of => $1, p_now => $2)", as_of, now
            )
        return await self._db.fetchval("select odc.list_plan(p_now => $1)", now)

    async def diff_plans(self, before: int | datetime, after: int | datetime) -> str:
        """Whose planned starts moved from one pass to another, and why: passes by number, or the
        last one until a moment. Raises UnknownPass."""
        return await self._db.fetchval(
            "select odc.diff_plans(p_from => $1, p_from_at => $2, p_to => $3, p_to_at => $4)",
            *_pass(before), *_pass(after),
        )  # fmt: skip

    async def replay_pass(self, pass_id: int, policy: str | None, plan_depth: int | None) -> str:
        """What a pass decides from what it read then, compared with what it decided then."""
        return await self._db.fetchval(
            "select odc.replay_pass(p_pass_id => $1, p_policy => $2, p_plan_depth => $3)",
            pass_id, policy, plan_depth,
        )  # fmt: skip

    async def nodes(self, now: datetime, as_of: datetime | None = None) -> str:
        if as_of is not None:
            return await self._db.fetchval(
                "select odc.past_nodes(p_as_of => $1, p_now => $2)", as_of, now
            )
        return await self._db.fetchval("select odc.list_nodes(p_now => $1)", now)

    async def fragmentation(self) -> str:
        """How free GPUs lie on the nodes, per type."""
        return await self._db.fetchval("select odc.list_fragmentation()")

    async def partitions(self) -> str:
        return await self._db.fetchval("select odc.list_partitions()")

    async def policies(self) -> str:
        return await self._db.fetchval("select odc.list_policies()")

    async def diag(self, now: datetime) -> str:
        """Counts by state, the last pass, the term: what `odcctl diag` shows."""
        return await self._db.fetchval("select odc.diagnose(p_now => $1)", now)

    async def events(
        self, after: int, limit: int, job_id: int | None = None
    ) -> list[tuple[int, str]]:
        """Events above an id, oldest first, as (id, JSON text); only those below every transaction
        still open, so that none is passed over."""
        rows = await self._db.fetch(
            "select id, body from odc.events_after(p_after => $1, p_limit => $2, p_job_id => $3)",
            after, limit, job_id,
        )  # fmt: skip
        return [(row["id"], row["body"]) for row in rows]

    async def last_event(self) -> int:
        """The event that events() would give last now; 0 when there is none."""
        return await self._db.fetchval("select odc.last_event()")

    async def settled(self, job_ids: Sequence[int]) -> list[int]:
        """Which of these jobs, and arrays as a whole, have nothing live any more."""
        rows = await self._db.fetch(
            "select job_id from odc.settled_among(p_job_ids => $1)", list(job_ids)
        )
        return [row["job_id"] for row in rows]

    async def ended(self, selector: Selector) -> str | None:
        """Null while anything of the selection is live; else a JSON array of
        {"id","array_task_id","state","exit_code","signal"} of every job in it."""
        return await self._db.fetchval(
            "select odc.ended_jobs(p_job_id => $1, p_tasks => $2::text::int4multirange)",
            selector.job_id, selector.tasks,
        )  # fmt: skip

    async def job_owner(self, job_id: int) -> tuple[int, str] | None:
        row = await self._db.fetchrow("select uid, user_name from odc.job where id = $1", job_id)
        return (row["uid"], row["user_name"]) if row else None

    async def resolve(self, selector: Selector) -> list[int]:
        """Ids of the jobs a selector names (elements that started, and the range's row)."""
        rows = await self._db.fetch(
            "select job_id from odc.resolve_jobs(p_job_id => $1, "
            "p_tasks => $2::text::int4multirange)",
            selector.job_id, selector.tasks,
        )  # fmt: skip
        return [row["job_id"] for row in rows]

    async def without_files(self, job_ids: Sequence[int]) -> list[int]:
        """Which of these jobs write to a terminal or to what the executor keeps, not to files: of
        pods all that named none."""
        rows = await self._db.fetch(
            "select id from odc.job where id = any ($1) "
            "and ((options ->> 'spool_output')::boolean or (options ->> 'pty')::boolean "
            "or stdout is null "
            "and exists (select from odc.local_host where machine_id like 'kubernetes:%'))",
            list(job_ids),
        )
        return [row["id"] for row in rows]

    async def script(self, job_id: int) -> str | None:
        return await self._db.fetchval(
            "select t.content from odc.job as j "
            "join odc.job_text as t on t.digest = j.script_digest where j.id = $1",
            job_id,
        )

    async def texts(self, digests: Sequence[str]) -> dict[str, str]:
        rows = await self._db.fetch(
            "select digest, content from odc.job_text where digest = any ($1)", list(digests)
        )
        return {row["digest"]: row["content"] for row in rows}


def _pass(named: int | datetime) -> tuple[int | None, datetime | None]:
    return (None, named) if isinstance(named, datetime) else (named, None)
