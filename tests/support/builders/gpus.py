"""A queue on real GPUs whose usage is known from a source: for the tests of GPU usage."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from tests.support.builders.jobs import ALICE, Identity, Queue, a_cluster
from tests.support.harness.database import Sql

Found = dict[str, Any]


class GpuQueue(Queue):
    """Two nodes with eight GPUs each that are not declared, and a source."""

    def __init__(self, sql: Sql, source: str | None = "prometheus", now: datetime | None = None):
        super().__init__(sql)
        self.now = now or self.now
        nodes = [
            {"name": f"gpu-{n}", "gpu_type": "h100", "gpus": 8, "cpus": 64, "mem_mib": 64_000}
            for n in (1, 2)
        ]
        a_cluster(sql, now=self.now, more=nodes)
        self.meter(source)

    def meter(
        self, source: str | None, *, idle_ratio: float = 0.05, idle_after_s: int = 900
    ) -> None:
        self.sql.value(
            "select odc.set_gpu_meter(0, $1, $2, $3) is null", source, idle_ratio, idle_after_s
        )

    def run(self, who: Identity = ALICE, **fields: Any) -> int:
        """A job whose members have all started."""
        job_id = self.submit(who, **{"gpus_per_node": 2, **fields})
        assert job_id in self.start()
        self.began(job_id)
        return job_id

    def began(self, job_id: int) -> None:
        self._record(job_id, "started")

    def lose(self, job_id: int) -> None:
        """The node is lost: the job is requeued if it may be."""
        self._record(job_id, "lost")

    def _record(self, job_id: int, kind: str) -> None:
        members = self.sql.rows(
            "select r.attempt, a.rank from odc.running as r join odc.allocation as a "
            "using (job_id) where job_id = $1 order by 2",
            job_id,
        )
        n = len(members)
        self.sql.rows(
            "select * from odc.record_facts(0, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
            [job_id] * n, [m["attempt"] for m in members], [m["rank"] for m in members],
            [kind] * n, [self.now] * n, [None] * n, [None] * n, [None] * n, [None] * n, self.now,
        )  # fmt: skip

    def owed(self) -> list[tuple[int, int]]:
        rows = self.sql.rows("select * from odc.owed_gpu_use(0, $1, 1000, $1)", self.now)
        return [(row["job_id"], row["attempt"]) for row in rows]

    def store(self, *found: Found) -> int:
        return self.sql.value(
            "select odc.store_gpu_use(0, $1::jsonb, $2)", json.dumps(found), self.now
        )

    def add(self, *parts: Found) -> None:
        self.sql.value("select odc.add_gpu_use(0, $1::jsonb) is null", json.dumps(parts))

    def look(self, *looks: Found, every_s: float = 60) -> None:
        self.sql.value(
            "select odc.note_gpu_now(0, $1::jsonb, $2, $3, $4) is null", json.dumps(looks),
            self.now - timedelta(seconds=every_s), self.now + timedelta(seconds=3 * every_s),
            self.now,
        )  # fmt: skip

    def use(self, job_id: int, attempt: int = 1) -> Found:
        return self.sql.row(
            "select * from odc.gpu_use where job_id = $1 and attempt = $2", job_id, attempt
        )

    def use_began(self, job_id: int) -> datetime:
        """The time at which the current or last attempt started to run."""
        return self.sql.value(
            "select coalesce((select running_at from odc.running where job_id = $1), "
            "(select max(running_at) from odc.attempt where job_id = $1))",
            job_id,
        )

    def reported_use(self, job_id: int) -> Any:
        """The job's gpu_use in the API."""
        text = self.sql.value("select odc.show_jobs($1, null, $2)", job_id, self.now)
        return json.loads(text)[0]["gpu_use"]

    def idle(self, **filters: Any) -> Any:
        return json.loads(
            self.sql.value("select odc.list_idle($1::jsonb, $2)", json.dumps(filters), self.now)
        )

    def measured(self) -> dict[str, dict[str, float]]:
        """Metrics: their values by the values of their labels."""
        found: dict[str, dict[str, float]] = {}
        for row in self.sql.rows("select * from odc.measure_gpu_use($1)", self.now):
            labels = ",".join(row["labels"])
            found.setdefault(row["metric"], {})[labels] = row["value"]
        return found


def a_figure(job_id: int, attempt: int = 1, **fields: Any) -> Found:
    return {
        "job_id": job_id, "attempt": attempt, "covered_s": 3000.0, "busy_gpu_s": 4000.0,
        "mem_peak_mib": 70_000, "energy_j": 1.5e6, "gpu_uuids": ["GPU-a", "GPU-b"], **fields,
    }  # fmt: skip


def a_look(job_id: int, attempt: int | None = 1, **fields: Any) -> Found:
    return {
        "job_id": job_id, "attempt": attempt, "util_ratio": 0.5, "mem_used_mib": 1000,
        "resting": [], "gpus": [], **fields,
    }  # fmt: skip
