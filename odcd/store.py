"""One typed method per SQL entry function, nothing else. Every call is one transaction.

Methods that answer with a JSON text hand on what the database wrote: the API sends it as it is.
Each raises the OdcError whose code the function raised, or DatabaseDown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from odcd.account_store import AccountStore, actor_of
from odcd.build_store import BuildStore
from odcd.disk_store import DiskStore
from odcd.gpu_use_store import GpuUseStore
from odcd.keys import NewKey
from odcd.model import (
    PROGRESS,
    Canary,
    CanaryEnd,
    DiskUse,
    Dispatch,
    Fact,
    GpuTypeSize,
    Identity,
    Member,
    NodeReport,
    Selector,
    Stop,
    Submitted,
)
from odcd.page_store import PageStore
from odcd.reservation_store import ReservationStore

# Filters of list_jobs and cancel_jobs, all optional, all ANDed: ids (Selector dicts), user, name[],
# partition[], account[], qos[], state[], job_ids[]; of list_jobs text, too. Unknown keys are
# refused by the API before.
Filters = Mapping[str, object]


class Store(AccountStore, ReservationStore, DiskStore, BuildStore, GpuUseStore, PageStore):
    # -- submit ---------------------------------------------------------------------------------

    async def submit(
        self, requests: str, digests: Sequence[str], texts: Sequence[str], now: datetime
    ) -> list[list[Submitted]]:
        """Submit many requests in one transaction; the answers per request, per job of it.

        requests: a JSON array of {uid, gid, user, operator, key, digest, dry_run, jobs: […]}, made
        by odcd.submission. A request is taken or refused whole; one refused touches no other.
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

    # -- changes by users: every one returns one JSON object a job touched -------------------------
    # {"job_id", "array_task_id"|null, "outcome": "cancelled"|…, "code", "message", "hint"}

    async def cancel(
        self, who: Identity, filters: Filters, now: datetime, *, signal: int | None = None
    ) -> str:
        """Cancel pending jobs now, ask running ones to end; with signal, only signal running ones
        (outcome "signal", with job_id and attempt: the caller then tells the executor)."""
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
        """These running jobs have written a checkpoint."""
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
            actor_of(who), json.dumps(_plain(filters)), now, *more.values(),
        )  # fmt: skip

    # -- queries; all JSON texts ------------------------------------------------------------------

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
            json.dumps(_plain(filters)), ended, after, limit, list(fields) if fields else None, now,
            *([] if as_of is None else [as_of]),
        )  # fmt: skip
        return row["jobs"], row["next"]

    async def show_jobs(
        self, selector: Selector, now: datetime, as_of: datetime | None = None
    ) -> str:
        """The job, or all rows of the array (elements and its waiting range), as a JSON array."""
        if as_of is not None:
            return await self._db.fetchval(
                "select odc.past_job(p_as_of => $1, p_job_id => $2, "
                "p_tasks => $3::text::int4multirange, p_now => $4)",
                as_of, selector.job_id, selector.tasks, now,
            )  # fmt: skip
        return await self._db.fetchval(
            "select odc.show_jobs(p_job_id => $1, p_tasks => $2::text::int4multirange, "
            "p_now => $3)",
            selector.job_id, selector.tasks, now,
        )  # fmt: skip

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

    # -- for the leader; each takes the term and raises LeadershipLost when it is not the newest

    async def record_facts(self, term: int, facts: Sequence[Fact], now: datetime) -> list[int]:
        """Write what an executor saw; the ids of jobs whose attempt ended by it. Idempotent."""
        # First: how far a member was is not told of one that is over.
        if progress := [fact for fact in facts if fact.kind in PROGRESS]:
            await self.record_progress(term, progress, now)
            facts = [fact for fact in facts if fact.kind not in PROGRESS]
            if not facts:
                return []
        rows = await self._db.fetch(
            "select job_id from odc.record_facts(p_term => $1, p_job_ids => $2, p_attempts => $3, "
            "p_ranks => $4, p_kinds => $5, p_ats => $6, p_exit_codes => $7, p_signals => $8, "
            "p_causes => $9, p_details => $10, p_now => $11, p_suspects => $12)",
            term,
            [f.job_id for f in facts], [f.attempt for f in facts], [f.rank for f in facts],
            [f.kind for f in facts], [f.at for f in facts], [f.exit_code for f in facts],
            [f.signal for f in facts], [f.cause for f in facts], [f.detail for f in facts], now,
            [f.suspect for f in facts],
        )  # fmt: skip
        return [row["job_id"] for row in rows]

    async def register_nodes(
        self, term: int, nodes: Sequence[NodeReport], now: datetime, *, whole: bool
    ) -> None:
        """Write the inventory; with whole, a node that is not in it goes DOWN."""
        body = [
            {
                "name": n.name, "gpu_type": n.gpu_type, "gpus": n.gpus, "cpus": n.cpus,
                "mem_mib": n.mem_mib, "zone": n.zone, "efa_domain": n.efa_domain,
                "topology": list(n.topology), "features": list(n.features), "declared": n.declared,
                "state": n.state, "reason": n.reason, "foreign_gpus": n.foreign_gpus,
                "foreign_cpus": n.foreign_cpus, "foreign_mem_mib": n.foreign_mem_mib,
            }
            for n in nodes
        ]  # fmt: skip
        await self._db.execute(
            "select odc.register_nodes(p_term => $1, p_nodes => $2::jsonb, p_whole => $3, "
            "p_now => $4)",
            term, json.dumps(body), whole, now,
        )  # fmt: skip

    async def gpu_type_sizes(self) -> dict[str, GpuTypeSize]:
        rows = await self._db.fetch(
            "select name, gpus_per_node, cpus_per_node, mem_per_node_mib from odc.gpu_type"
        )
        return {
            row["name"]: GpuTypeSize(
                gpus=row["gpus_per_node"],
                cpus=row["cpus_per_node"],
                mem_mib=row["mem_per_node_mib"],
            )
            for row in rows
        }

    async def instance_types(self) -> dict[str, str]:
        """GPU type by the cloud's instance type."""
        rows = await self._db.fetch(
            "select name, instance_type from odc.gpu_type where instance_type is not null"
        )
        return {row["instance_type"]: row["name"] for row in rows}

    async def dispatches(self, term: int, job_ids: Sequence[int] | None) -> list[Dispatch]:
        """The running attempts of these jobs, or of all, with what an executor needs."""
        rows = await self._db.fetch(
            "select body from odc.dispatches(p_term => $1, p_job_ids => $2)",
            term, None if job_ids is None else list(job_ids),
        )  # fmt: skip
        return [_dispatch(json.loads(row["body"])) for row in rows]

    async def dispatch_of(self, job_id: int, attempt: int | None = None) -> Dispatch | None:
        """The last (or given) attempt of one job, live or ended; None: it never started."""
        body = await self._db.fetchval(
            "select odc.dispatch_of(p_job_id => $1, p_attempt => $2)", job_id, attempt
        )
        return _dispatch(json.loads(body)) if body else None

    async def live_members(self, term: int) -> list[tuple[int, int, int, bool]]:
        """(job, attempt, rank, started) of every member that has not ended."""
        rows = await self._db.fetch(
            "select job_id, attempt, rank, started from odc.live_members(p_term => $1)", term
        )
        return [(r["job_id"], r["attempt"], r["rank"], r["started"]) for r in rows]

    async def unstarted(self, term: int, before: datetime) -> list[int]:
        """Jobs dispatched before that moment of which some member has not started."""
        rows = await self._db.fetch(
            "select job_id from odc.unstarted_jobs(p_term => $1, p_before => $2)", term, before
        )
        return [row["job_id"] for row in rows]

    async def check_host(self, machine_id: str, host_name: str) -> None:
        """Raises OtherHost when another machine's local executor leads or runs jobs here."""
        await self._db.execute(
            "select odc.check_host(p_machine_id => $1, p_host_name => $2)", machine_id, host_name
        )

    async def claim_host(self, term: int, machine_id: str, host_name: str) -> None:
        await self._db.execute(
            "select odc.claim_host(p_term => $1, p_machine_id => $2, p_host_name => $3)",
            term, machine_id, host_name,
        )  # fmt: skip

    async def stops(self, term: int, now: datetime, *, again: bool = False) -> list[Stop]:
        """Running attempts with an intent to end them that has not been sent (or not for 60 s, or
        again at all); marks them sent."""
        rows = await self._db.fetch(
            "select job_id, attempt, intent, grace_s "
            "from odc.take_stops(p_term => $1, p_now => $2, p_again => $3)",
            term, now, again,
        )  # fmt: skip
        return [
            Stop(job_id=r["job_id"], attempt=r["attempt"], intent=r["intent"], grace_s=r["grace_s"])
            for r in rows
        ]

    async def moved_ends(self, term: int) -> list[tuple[int, int, datetime | None]]:
        """(job, attempt, end) of running attempts whose time limit moved, until ends_told()."""
        rows = await self._db.fetch(
            "select job_id, attempt, ends_at from odc.moved_ends(p_term => $1)", term
        )
        return [(r["job_id"], r["attempt"], r["ends_at"]) for r in rows]

    async def ends_told(self, term: int, ends: Sequence[tuple[int, int, datetime | None]]) -> None:
        """The executor has taken these."""
        await self._db.execute(
            "select odc.note_ends(p_term => $1, p_job_ids => $2, p_attempts => $3, p_ends => $4)",
            term, *(list(column) for column in zip(*ends, strict=True)),
        )  # fmt: skip

    async def signals(self, term: int, now: datetime) -> list[tuple[int, int, int, bool]]:
        """(job, attempt, signal, batch only) of what is due for its signal before the limit; marks
        them signalled."""
        rows = await self._db.fetch(
            "select job_id, attempt, signal, batch_only "
            "from odc.take_signals(p_term => $1, p_now => $2)",
            term, now,
        )  # fmt: skip
        return [(r["job_id"], r["attempt"], r["signal"], r["batch_only"]) for r in rows]

    async def sweep(
        self, term: int, now: datetime, *, keeps_time: bool = True,
        node_grace: timedelta | None = None, quarantine: bool | None = None, canaries: bool = True,
        stale_after: timedelta | None = None,
    ) -> datetime | None:  # fmt: skip
        """What time alone does: begin times, delays, deadlines, limits overrun, nodes away for
        longer than node_grace, nodes that eat jobs (quarantine; None: not now. canaries: they can
        be tried), partitions made ahead, old keys dropped; dev servers that have waited for
        stale_after. keeps_time: the executor ends jobs at their limits.
        Returns when it should run next, at the latest."""
        return await self._db.fetchval(
            "select odc.sweep(p_term => $1, p_now => $2, p_keeps_time => $3, p_node_grace => $4, "
            "p_quarantine => $5, p_canaries => $6, p_stale_after => $7)",
            term, now, keeps_time, node_grace, quarantine, canaries, stale_after,
        )  # fmt: skip

    async def canaries(self, term: int, now: datetime) -> list[Canary]:
        """Those that are to be on their nodes now; begins those that are due."""
        rows = await self._db.fetch(
            "select number, node, gpu_type, gpus, cpus, mem_mib, until "
            "from odc.take_canaries(p_term => $1, p_now => $2)",
            term, now,
        )  # fmt: skip
        return [Canary(**row) for row in rows]

    async def end_canary(self, term: int, end: CanaryEnd, now: datetime) -> None:
        await self._db.execute(
            "select odc.end_canary(p_term => $1, p_number => $2, p_passed => $3, p_told => $4, "
            "p_now => $5)",
            term, end.number, end.passed, end.told, now,
        )  # fmt: skip

    async def note_orphans(self, term: int, names: Sequence[str], now: datetime) -> None:
        await self._db.execute(
            "select odc.note_orphans(p_term => $1, p_names => $2, p_now => $3)",
            term, list(names), now,
        )  # fmt: skip

    # -- output kept for executors that lose it

    async def keep_output(
        self, key: tuple[int, int, int], content: bytes, written: int, now: datetime
    ) -> None:
        """key: job, attempt, rank. content: zlib of what was written, or of its two ends."""
        await self._db.execute(
            "select odc.keep_output(p_job_id => $1, p_attempt => $2, p_rank => $3, "
            "p_content => $4, p_written => $5, p_now => $6)",
            *key, content, written, now,
        )  # fmt: skip

    async def kept_output(self, key: tuple[int, int, int]) -> tuple[bytes, int] | None:
        row = await self._db.fetchrow(
            "select content, written from odc.kept_output "
            "where job_id = $1 and attempt = $2 and rank = $3",
            *key,
        )
        return (row["content"], row["written"]) if row else None

    async def is_live(self, job_id: int, attempt: int) -> bool:
        """Does the attempt hold its nodes?"""
        return await self._db.fetchval(
            "select exists (select from odc.running where job_id = $1 and attempt = $2)",
            job_id, attempt,
        )  # fmt: skip

    # -- nodes, by operators ---------------------------------------------------------------------

    async def set_node_state(
        self, who: Identity, names: Sequence[str], state: str, reason: str | None, now: datetime
    ) -> str:
        """state: UP, DRAIN or DOWN."""
        return await self._db.fetchval(
            "select odc.set_node_state(p_actor => $1::jsonb, p_names => $2, p_state => $3, "
            "p_reason => $4, p_now => $5)",
            json.dumps({"user": who.user, "uid": who.uid, "operator": who.operator}),
            list(names), state, reason, now,
        )  # fmt: skip

    # -- bookings and licences, changed by operators; all JSON texts ------------------------------

    async def bookings(self, who: Identity, now: datetime, *, ended: bool) -> str:
        """A JSON array of those that who may see; with ended, those that are over, too."""
        return await self._db.fetchval(
            "select odc.list_bookings(p_actor => $1::jsonb, p_all => $2, p_now => $3)",
            _actor(who), ended, now,
        )  # fmt: skip

    async def booking(self, who: Identity, name: str, now: datetime) -> str:
        return await self._db.fetchval(
            "select odc.show_booking(p_actor => $1::jsonb, p_name => $2, p_now => $3)",
            _actor(who), name, now,
        )  # fmt: skip

    async def make_booking(
        self, who: Identity, ask: Mapping[str, object], key: str | None, digest: str, now: datetime
    ) -> str:
        """ask: what odc._read_booking takes. digest: what tells the key's request from another."""
        return await self._db.fetchval(
            "select odc.create_booking(p_actor => $1::jsonb, p_ask => $2::jsonb, p_key => $3, "
            "p_digest => $4, p_now => $5)",
            _actor(who), json.dumps(dict(ask)), key, digest, now,
        )  # fmt: skip

    async def edit_booking(
        self, who: Identity, name: str, ask: Mapping[str, object], now: datetime
    ) -> str:
        return await self._db.fetchval(
            "select odc.edit_booking(p_actor => $1::jsonb, p_name => $2, p_ask => $3::jsonb, "
            "p_now => $4)",
            _actor(who), name, json.dumps(dict(ask)), now,
        )  # fmt: skip

    async def delete_booking(self, who: Identity, name: str, now: datetime) -> str:
        return await self._db.fetchval(
            "select odc.delete_booking(p_actor => $1::jsonb, p_name => $2, p_now => $3)",
            _actor(who), name, now,
        )  # fmt: skip

    async def licences(self) -> str:
        return await self._db.fetchval("select odc.list_licences()")

    async def set_licence(self, who: Identity, name: str, total: int, now: datetime) -> str:
        return await self._db.fetchval(
            "select odc.set_licence(p_actor => $1::jsonb, p_name => $2, p_total => $3, "
            "p_now => $4)",
            _actor(who), name, total, now,
        )  # fmt: skip

    async def delete_licence(self, who: Identity, name: str, now: datetime) -> str:
        return await self._db.fetchval(
            "select odc.delete_licence(p_actor => $1::jsonb, p_name => $2, p_now => $3)",
            _actor(who), name, now,
        )  # fmt: skip

    # -- partitions and policies, by operators ---------------------------------------------------

    async def change_partition(
        self, who: Identity, name: str, changes: Mapping[str, object], now: datetime, *, make: bool
    ) -> str:
        """changes: what odc.edit_partition takes. make: there is none of that name yet."""
        function = "create_partition" if make else "edit_partition"
        return await self._db.fetchval(
            f"select odc.{function}(p_actor => $1::jsonb, p_name => $2, p_changes => $3::jsonb, "
            "p_now => $4)",
            _actor(who), name, json.dumps(dict(changes)), now,
        )  # fmt: skip

    async def make_policy(
        self, who: Identity, name: str, like: str | None, terms: Mapping[str, object], now: datetime
    ) -> str:
        return await self._db.fetchval(
            "select odc.create_policy(p_actor => $1::jsonb, p_name => $2, p_like => $3, "
            "p_changes => $4::jsonb, p_now => $5)",
            _actor(who), name, like, json.dumps(dict(terms)), now,
        )  # fmt: skip

    async def edit_policy(
        self, who: Identity, name: str, changes: Mapping[str, object], now: datetime
    ) -> str:
        return await self._db.fetchval(
            "select odc.edit_policy(p_actor => $1::jsonb, p_name => $2, p_changes => $3::jsonb, "
            "p_now => $4)",
            _actor(who), name, json.dumps(dict(changes)), now,
        )  # fmt: skip

    async def delete_partition(self, who: Identity, name: str, now: datetime) -> str:
        return await self._db.fetchval(
            "select odc.delete_partition(p_actor => $1::jsonb, p_name => $2, p_now => $3)",
            _actor(who), name, now,
        )  # fmt: skip

    async def delete_policy(self, who: Identity, name: str, now: datetime) -> str:
        return await self._db.fetchval(
            "select odc.delete_policy(p_actor => $1::jsonb, p_name => $2, p_now => $3)",
            _actor(who), name, now,
        )  # fmt: skip

    # -- keys ------------------------------------------------------------------------------------

    async def keep_key(self, who: Identity, key: NewKey, now: datetime, life: timedelta) -> None:
        await self._db.execute(
            "select odc.keep_api_key(p_digest => $1, p_user => $2, p_uid => $3, p_gid => $4, "
            "p_now => $5, p_expires_at => $6, p_prefix => $7)",
            key.digest, who.user, who.uid, who.gid, now, now + life, key.prefix,
        )  # fmt: skip

    async def key_owner(self, digest: str, now: datetime) -> tuple[str, int, int] | None:
        row = await self._db.fetchrow(
            "select user_name, uid, gid from odc.use_api_key(p_digest => $1, p_now => $2)",
            digest, now,
        )  # fmt: skip
        return (row["user_name"], row["uid"], row["gid"]) if row else None

    async def rotate_key(self, old: str, key: NewKey, now: datetime) -> datetime | None:
        """When the new key expires; None when the old one does not hold any more."""
        return await self._db.fetchval(
            "select odc.rotate_api_key(p_old => $1, p_digest => $2, p_prefix => $3, p_now => $4)",
            old, key.digest, key.prefix, now,
        )  # fmt: skip

    async def end_key(self, digest: str, now: datetime) -> bool:
        return await self._db.fetchval(
            "select odc.end_api_key(p_digest => $1, p_now => $2)", digest, now
        )

    async def end_user_keys(self, who: Identity, user: str, now: datetime) -> str:
        """JSON {user, keys, page_sessions}: how many held. Raises NotOwner."""
        return await self._db.fetchval(
            "select odc.end_user_keys(p_actor => $1::jsonb, p_user => $2, p_now => $3)",
            _actor(who), user, now,
        )  # fmt: skip

    async def show_key(self, uid: int, digest: str | None, now: datetime) -> str:
        """JSON {key, sessions, page_sessions}."""
        return await self._db.fetchval(
            "select odc.show_key(p_uid => $1, p_digest => $2, p_now => $3)", uid, digest, now
        )

    async def use_signature(self, digest: str, expires_at: datetime, now: datetime) -> bool:
        return await self._db.fetchval(
            "select odc.use_signature(p_digest => $1, p_expires_at => $2, p_now => $3)",
            digest, expires_at, now,
        )  # fmt: skip

    async def log_in(
        self, user: str, detail: Mapping[str, str], github_user: str | None, own_uid: int,
        key: NewKey, now: datetime, expires_at: datetime, until: datetime,
    ) -> int:  # fmt: skip
        """The user's uid. until: rotation of the key reaches no further. Raises LoginRefused."""
        return await self._db.fetchval(
            "select odc.log_in(p_user => $1, p_detail => $2::jsonb, p_github => $3, "
            "p_own_uid => $4, p_digest => $5, p_prefix => $6, p_now => $7, p_expires_at => $8, "
            "p_until_at => $9)",
            user, json.dumps(dict(detail)), github_user, own_uid, key.digest, key.prefix, now,
            expires_at, until,
        )  # fmt: skip

    async def has_logged_in(self, user: str) -> bool:
        return await self._db.fetchval(
            "select exists (select from odc.login_user where user_name = $1)", user
        )

    async def refuse_login(self, detail: Mapping[str, str], now: datetime) -> None:
        await self._db.execute(
            "select odc.refuse_login(p_detail => $1::jsonb, p_now => $2)",
            json.dumps(dict(detail)), now,
        )  # fmt: skip

    async def member_name(self, uid: int) -> str | None:
        """The name of a user in the accounts, if it could be one of a machine."""
        return await self._db.fetchval(
            "select min(user_name) from odc.association "
            "where uid = $1 and user_name ~ '^[A-Za-z_][A-Za-z0-9._-]{0,99}$'",
            uid,
        )


def _actor(who: Identity) -> str:
    return json.dumps({"user": who.user, "uid": who.uid, "operator": who.operator})


def _plain(filters: Filters) -> dict[str, Any]:
    plain: dict[str, Any] = dict(filters)
    if "ids" in plain:
        plain["ids"] = [
            {"job_id": s.job_id, "tasks": s.tasks} if isinstance(s, Selector) else s
            for s in plain["ids"]
        ]
    return plain


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


def _pass(named: int | datetime) -> tuple[int | None, datetime | None]:
    return (None, named) if isinstance(named, datetime) else (named, None)
