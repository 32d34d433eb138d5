"""A queue created by the functions that the daemon calls: nodes, submits, passes, facts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from odcd.jobs.submission import prepare
from odcd.records.job import Identity, JobSpec
from tests.support.harness.database import Sql

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ALICE = Identity(user="alice", uid=1001, gid=100, operator=False)
BOB = Identity(user="bob", uid=1002, gid=100, operator=False)
ROOT = Identity(user="root", uid=0, gid=0, operator=True)


def a_job(**fields: Any) -> JobSpec:
    return JobSpec(
        **{"script": "#!/bin/sh\ntrue\n", "work_dir": "/tmp", "gpus": 1, "launch": "all", **fields}
    )


class Cluster:
    """One partition of nodes with 8 GPUs each. The test sets the time."""

    def __init__(self, sql: Sql, nodes: int = 1, gpu_type: str = "h100") -> None:
        self.sql = sql
        self.now = NOW
        body = [
            {"name": f"n{i}", "gpu_type": gpu_type, "gpus": 8, "cpus": 64, "mem_mib": 64_000,
             "declared": True}
            for i in range(1, nodes + 1)
        ]  # fmt: skip
        sql.execute("select odc.register_nodes(0, $1::jsonb, true, $2)", json.dumps(body), NOW)

    def submit(self, who: Identity = ALICE, **fields: Any) -> int:
        prepared = prepare(who, [a_job(**fields)], key=None, dry_run=False)
        row = self.sql.row(
            "select job_id, message from odc.submit_jobs($1::jsonb, $2, $3, $4)",
            json.dumps([prepared.request]),
            list(prepared.texts),
            list(prepared.texts.values()),
            self.now,
        )
        assert row["job_id"] is not None, row["message"]
        return row["job_id"]

    def plan(self) -> list[int]:
        return self.sql.value("select started from odc.plan_pass(0, $1)", self.now)

    def end(self, job_id: int, exit_code: int = 0, signal: int | None = None) -> None:
        """Every member of the job's attempt exits with this code."""
        for row in self.sql.rows(
            "select r.attempt, a.rank from odc.running as r "
            "join odc.allocation as a using (job_id) where r.job_id = $1",
            job_id,
        ):
            self.fact(job_id, row["attempt"], row["rank"], "exited", exit_code, signal)

    def fact(
        self, job_id: int, attempt: int, rank: int, kind: str,
        exit_code: int | None = None, signal: int | None = None,
        cause: str | None = None, detail: str | None = None,
    ) -> None:  # fmt: skip
        self.sql.rows(
            "select * from odc.record_facts(0, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
            [job_id], [attempt], [rank], [kind], [self.now], [exit_code], [signal], [cause],
            [detail], self.now,
        )  # fmt: skip

    def move(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    def list(
        self, filters: Mapping[str, Any] | None = None, *, ended: bool = False,
        after: int | None = None, limit: int = 1000, fields: list[str] | None = None,
    ) -> tuple[list[dict[str, Any]], int | None]:  # fmt: skip
        row = self.sql.row(
            "select jobs, next from odc.list_jobs($1::jsonb, $2, $3, $4, $5, $6)",
            json.dumps(filters or {}), ended, after, limit, fields, self.now,
        )  # fmt: skip
        return json.loads(row["jobs"]), row["next"]

    def ids(self, filters: Mapping[str, Any] | None = None, **options: Any) -> list[int]:
        return [job["id"] for job in self.list(filters, **options)[0]]

    def show(self, job_id: int, tasks: str | None = None) -> list[dict[str, Any]]:
        return json.loads(
            self.sql.value(
                "select odc.show_jobs($1, $2::text::int4multirange, $3)", job_id, tasks, self.now
            )
        )

    def job(self, job_id: int) -> dict[str, Any]:
        [job] = [job for job in self.show(job_id) if job["id"] == job_id]
        return job

    def explain(self, job_id: int) -> dict[str, Any]:
        return json.loads(self.sql.value("select odc.explain_job($1, $2)", job_id, self.now))

    def nodes(self) -> list[dict[str, Any]]:
        return json.loads(self.sql.value("select odc.list_nodes($1)", self.now))

    def diag(self) -> dict[str, Any]:
        return json.loads(self.sql.value("select odc.diagnose($1)", self.now))

    def ended(self, job_id: int, tasks: str | None = None) -> list[dict[str, Any]] | None:
        answer = self.sql.value(
            "select odc.ended_jobs($1, $2::text::int4multirange)", job_id, tasks
        )
        return json.loads(answer) if answer else None
