"""Dev servers in the tests of SQL: what their users and the leader do."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

from odcd.records.job import Identity, ReservationSpec
from tests.support.builders.jobs import ALICE, Queue, submit

HOUR = 3600


class Reservations:
    def __init__(self, queue: Queue) -> None:
        self.queue = queue
        self.sql = queue.sql

    def reserve(
        self, who: Identity = ALICE, *, hours: float = 8, gpus: int = 1, nodes: int = 1,
        details: dict[str, object] | None = None, **fields: Any,
    ) -> int:  # fmt: skip
        spec = ReservationSpec(
            script="#!/bin/sh\n", work_dir="/tmp", time_limit_s=round(hours * HOUR),
            node_count=nodes, gpus_per_node=gpus, pty=True, details=details or {},
            **{"name": "box", **fields},
        )  # fmt: skip
        [answer] = submit(self.sql, spec, who=who, now=self.queue.now)
        assert answer.job_id is not None, answer
        return answer.job_id

    def facts(self, job_id: int, kind: str, *ranks: int, **more: Any) -> None:
        """The executor's reports about these members."""
        attempt = self.queue.running(job_id)["attempt"]
        n = len(ranks)
        self.sql.rows(
            "select * from odc.record_facts(0, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
            [job_id] * n, [attempt] * n, list(ranks), [kind] * n, [self.queue.now] * n,
            [more.get("exit_code")] * n, [None] * n, [more.get("cause")] * n,
            [more.get("detail")] * n, self.queue.now,
        )  # fmt: skip

    def active(self, who: Identity = ALICE, **fields: Any) -> int:
        """A reservation that is active."""
        job_id = self.reserve(who, **fields)
        self.queue.start()
        self.facts(job_id, "started", *range(fields.get("nodes", 1)))
        return job_id

    def extend(
        self, job_id: int, hours: float, who: Identity = ALICE, *, dry_run: bool = False
    ) -> dict[str, Any]:
        answer = self.sql.value(
            "select odc.extend_reservation($1::jsonb, $2, $3, $4, $5)",
            actor(who), job_id, round(hours * HOUR), self.queue.now, dry_run,
        )  # fmt: skip
        return json.loads(answer)

    def show(self, job_id: int, who: Identity = ALICE) -> dict[str, Any]:
        return json.loads(
            self.sql.value(
                "select odc.show_reservation($1::jsonb, $2, odc.queue_positions($3)::jsonb, $3)",
                actor(who),
                job_id,
                self.queue.now,
            )
        )

    def list(
        self, who: Identity = ALICE, users: list[str] | None = None,
        statuses: list[str] | None = None, *, ended: bool = False,
    ) -> dict[int, str]:  # fmt: skip
        """Status by id."""
        reservations = json.loads(
            self.sql.value(
                "select odc.list_reservations($1::jsonb, $2, $3, $4, 100, null, $5)",
                actor(who), users, statuses, ended, self.queue.now,
            )
        )  # fmt: skip
        return {one["id"]: one["status"] for one in reservations}

    def status(self, job_id: int) -> str:
        return self.show(job_id)["status"]

    def due(self) -> list[tuple[int, int | None]]:
        """Job and level of the notices that are due."""
        rows = self.sql.rows("select * from odc.take_warnings(0, $1)", self.queue.now)
        return [(row["job_id"], row["minutes"]) for row in rows]

    def warned(self, job_id: int, minutes: int | None, trouble: str | None = None) -> None:
        self.sql.rows(
            "select odc.note_warned(0, $1, $2, $3, $4, $5)",
            job_id, self.row(job_id)["expires_at"], minutes, trouble, self.queue.now,
        )  # fmt: skip

    def next_warning(self) -> datetime | None:
        return self.sql.value("select odc.next_warning($1)", self.queue.now)

    def row(self, job_id: int) -> dict[str, Any]:
        return self.sql.row("select * from odc.reservation where job_id = $1", job_id)

    def sweep(self, stale_s: float | None = None) -> datetime:
        """As the sweep of an executor that leaves time limits to the database."""
        return self.sql.value(
            "select odc.sweep(0, $1, p_keeps_time => false, "
            "p_stale_after => make_interval(secs => $2))",
            self.queue.now, stale_s,
        )  # fmt: skip


def actor(who: Identity) -> str:
    return json.dumps({"user": who.user, "uid": who.uid, "operator": who.operator})
