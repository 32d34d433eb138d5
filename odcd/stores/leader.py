"""The leader and its executor.

What takes the term raises LeadershipLost when it is not the newest.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from odcd.clock import Turns
from odcd.records.dispatch import PROGRESS, DiskUse, Dispatch, Fact, Member, Stop
from odcd.records.node import Canary, CanaryEnd, GpuTypeSize, NodeReport
from odcd.stores.reservations import ReservationStore


class LeaderStore(ReservationStore):
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
        found: list[Dispatch] = []
        turns = Turns()
        for row in rows:
            # Arguments alone can have megabytes.
            if turns.are_due():
                await turns.take()
            found.append(_dispatch(json.loads(row["body"])))
        return found

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
        be tried), old keys dropped; dev servers that have waited for stale_after. keeps_time: the
        executor ends jobs at their limits.
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
