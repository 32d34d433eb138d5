"""GPU usage of jobs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from odcd.database.pool import Database
from odcd.records.gpu_use import (
    AllocatedGpus,
    AttemptUsage,
    CurrentUsage,
    UnmeasuredAttempt,
    UsageSlice,
)


class GpuUseStore:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def set_meter(
        self, term: int, source: str | None, idle_ratio: float, idle_after: timedelta
    ) -> None:
        """Set where GPU usage is measured; None: it is not. Raises LeadershipLost."""
        await self._db.fetchval(
            "select odc.set_gpu_meter(p_term => $1, p_source => $2, p_idle_ratio => $3, "
            "p_idle_after_s => $4)",
            term, source, idle_ratio, max(1, round(idle_after.total_seconds())),
        )  # fmt: skip

    async def list_owed(
        self, term: int, ended_before: datetime, limit: int, now: datetime
    ) -> list[UnmeasuredAttempt]:
        """Ended attempts whose usage is missing, earliest end first. Raises LeadershipLost."""
        rows = await self._db.fetch(
            "select job_id, attempt, gpus, running_at, ended_at, covered_s, source "
            "from odc.owed_gpu_use(p_term => $1, p_ended_before => $2, p_most => $3, p_now => $4)",
            term, ended_before, limit, now,
        )  # fmt: skip
        return [UnmeasuredAttempt(**dict(row)) for row in rows]

    async def save(self, term: int, found: Sequence[AttemptUsage], now: datetime) -> int:
        """Store usage, at most once per attempt; return how many were stored. Raises
        LeadershipLost."""
        rows = [
            {
                "job_id": f.job_id, "attempt": f.attempt, "covered_s": f.covered_s,
                "busy_gpu_s": f.busy_gpu_s, "mem_peak_mib": f.mem_peak_mib,
                "energy_j": f.energy_j, "gave_up": f.gave_up,
                "gpu_uuids": None if f.gpu_uuids is None else list(f.gpu_uuids),
                "again_at": f.again_at.isoformat() if f.again_at else None,
            }
            for f in found
        ]  # fmt: skip
        return await self._db.fetchval(
            "select odc.store_gpu_use(p_term => $1, p_found => $2::jsonb, p_now => $3)",
            term, json.dumps(rows), now,
        )  # fmt: skip

    async def add(self, term: int, parts: Sequence[UsageSlice]) -> None:
        """Add parts of the usage. A part sent twice counts once. Raises LeadershipLost."""
        rows = [
            {
                "job_id": p.job_id, "attempt": p.attempt, "from": p.since.isoformat(),
                "to": p.until.isoformat(), "covered_s": p.covered_s, "busy_gpu_s": p.busy_gpu_s,
                "mem_peak_mib": p.mem_peak_mib, "energy_j": p.energy_j,
                "gpu_uuids": list(p.gpu_uuids),
            }
            for p in parts
        ]  # fmt: skip
        await self._db.fetchval(
            "select odc.add_gpu_use(p_term => $1, p_parts => $2::jsonb)", term, json.dumps(rows)
        )

    async def record_current(
        self, term: int, usage: Sequence[CurrentUsage], since: datetime, good_until: datetime,
        now: datetime,
    ) -> None:  # fmt: skip
        """Record the current usage of running jobs' GPUs, measured from since on. Raises
        LeadershipLost."""
        rows = [
            {
                "job_id": one.job_id, "attempt": one.attempt, "util_ratio": one.util_ratio,
                "mem_used_mib": one.mem_used_mib, "resting": list(one.idle_gpus),
                "gpus": [
                    {"rank": g.rank, "index": g.index, "uuid": g.uuid, "model": g.model}
                    for g in one.gpus
                ],
            }
            for one in usage
        ]  # fmt: skip
        await self._db.fetchval(
            "select odc.note_gpu_now(p_term => $1, p_looks => $2::jsonb, p_since => $3, "
            "p_good_until => $4, p_now => $5)",
            term, json.dumps(rows), since, good_until, now,
        )  # fmt: skip

    async def list_allocated(self, term: int) -> list[AllocatedGpus]:
        """GPUs of live jobs on real nodes, by job and rank. Raises LeadershipLost."""
        rows = await self._db.fetch(
            "select job_id, attempt, rank, gpu_indexes, running_at "
            "from odc.live_gpus(p_term => $1)",
            term,
        )
        return [
            AllocatedGpus(
                job_id=row["job_id"],
                attempt=row["attempt"],
                rank=row["rank"],
                indexes=tuple(row["gpu_indexes"]),
                running=row["running_at"] is not None,
            )
            for row in rows
        ]

    async def list_idle(self, filters: Mapping[str, object], now: datetime) -> str:
        """Allocated but idle GPUs and their users, as JSON. filters: user, account, gpu_type,
        kind."""
        return await self._db.fetchval(
            "select odc.list_idle(p_filters => $1::jsonb, p_now => $2)",
            json.dumps({key: value for key, value in filters.items() if value is not None}), now,
        )  # fmt: skip
