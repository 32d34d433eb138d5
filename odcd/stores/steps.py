"""Steps of running jobs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from odcd.database.pool import Database
from odcd.records.step import PlacedNode, Placement, StepEnd, StepRefused


class StepStore:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def create(
        self, term: int, job_id: int, key: str, *, name: str, command: str,
        wants: Mapping[str, object], now: datetime,
    ) -> Placement | StepRefused:  # fmt: skip
        """Create the step, or find the one that the same key created. Raises LeadershipLost."""
        text = await self._db.fetchval(
            "select odc.create_step(p_term => $1, p_job_id => $2, p_key => $3, p_name => $4, "
            "p_command => $5, p_wants => $6, p_now => $7)",
            term, job_id, key, name, command, json.dumps(wants), now,
        )  # fmt: skip
        answer: dict[str, Any] = json.loads(text)
        if answer["outcome"] in ("busy", "refused"):
            return StepRefused(
                why=answer.get("why", "busy"), allocated=answer.get("allocated"),
            )  # fmt: skip
        nodes = tuple(
            PlacedNode(
                rank=node["rank"], node=node["node"], tasks=node["tasks"], cpus=node["cpus"],
                gpu_indexes=tuple(node["gpus"] or ()),
            )
            for node in answer["nodes"]
        )  # fmt: skip
        return Placement(
            job_id=job_id, attempt=answer["attempt"], step=answer["step"], state=answer["state"],
            exit_code=answer["exit_code"], nodes=nodes,
        )  # fmt: skip

    async def end(self, term: int, ends: Sequence[StepEnd], now: datetime) -> None:
        """Record how steps ended; idempotent. Raises LeadershipLost."""
        body = json.dumps([
            {"job": e.job_id, "attempt": e.attempt, "step": e.step, "state": e.state,
             "exit_code": e.exit_code, "statuses": e.statuses, "started_at": e.started_at,
             "ended_at": e.ended_at, "detail": e.detail, "used": e.used}
            for e in ends
        ])  # fmt: skip
        await self._db.execute(
            "select odc.end_steps(p_term => $1, p_ends => $2, p_now => $3)", term, body, now
        )

    async def list(
        self,
        job_ids: Sequence[int] | None = None,
        *,
        live: bool = False,
        limit: int | None = None,
    ) -> list[dict[str, Any]]:
        """The steps of these jobs, or of all running jobs, at most limit; live: only those that
        have not ended."""
        rows = await self._db.fetch(
            "select * from odc.list_steps(p_job_ids => $1, p_live => $2) limit $3",
            None if job_ids is None else list(job_ids), live, limit,
        )  # fmt: skip
        found = [dict(row) for row in rows]
        for row in found:
            row["statuses"] = json.loads(row["statuses"]) if row["statuses"] else {}
        return found
