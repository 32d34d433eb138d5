"""Jobs, clusters and a queue with sane defaults, created by the functions that the daemon calls."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from odcd.errors import OdcError, refusal
from odcd.jobs.submission import prepare
from odcd.records.job import Identity, JobSpec, Submitted
from odcd.slurm.dependencies import parse_dependency
from tests.support.harness.database import Sql

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ALICE = Identity(user="alice", uid=1001, gid=100, operator=False)
BOB = Identity(user="bob", uid=1002, gid=100, operator=False)
ROOT = Identity(user="root", uid=0, gid=0, operator=True)

# GPUs, CPUs and MiB of a node, by type: small numbers, so that shares are easy to recognize.
NODES = {
    "h100": (8, 64, 64_000),
    "l4": (4, 16, 16_000),
    "t4": (4, 32, 16_000),
    "cpu-x86": (0, 16, 32_000),
}


def a_job(**fields: Any) -> JobSpec:
    """All members of a gang run the script, unless a test says otherwise."""
    base = {"script": "#!/bin/sh\ntrue\n", "work_dir": "/tmp", "launch": "all"}
    return JobSpec(**{**base, **fields})


def a_cluster(
    sql: Sql, *, now: datetime = NOW, more: Sequence[dict[str, Any]] = (), **nodes: int
) -> None:
    """Register this many nodes of each type: a_cluster(sql, h100=4) creates h100-1 to h100-4."""
    body = [
        {"name": f"{kind}-{n}", "gpu_type": kind, "gpus": NODES[kind][0], "cpus": NODES[kind][1],
         "mem_mib": NODES[kind][2], "declared": True}
        for kind, count in ((name.replace("_", "-"), count) for name, count in nodes.items())
        for n in range(1, count + 1)
    ]  # fmt: skip
    sql.execute(
        "select odc.register_nodes(0, $1::jsonb, true, $2)", json.dumps([*body, *more]), now
    )


def submit(
    sql: Sql, *specs: JobSpec, who: Identity = ALICE, key: str | None = None,
    dry_run: bool = False, now: datetime = NOW,
) -> list[Submitted]:  # fmt: skip
    """One request with these jobs; returns an answer per job."""
    prepared = prepare(who, specs, key=key, dry_run=dry_run)
    return submit_requests(sql, [prepared.request], prepared.texts, now=now)[0]


def submit_requests(
    sql: Sql, requests: Sequence[dict[str, Any]], texts: dict[str, str], *, now: datetime = NOW
) -> list[list[Submitted]]:
    answers: list[list[Submitted]] = [[] for _ in requests]
    for row in sql.rows(
        "select * from odc.submit_jobs($1::jsonb, $2, $3, $4) order by request, ord",
        json.dumps(requests), list(texts), list(texts.values()), now,
    ):  # fmt: skip
        answers[row["request"]].append(
            Submitted(
                job_id=row["job_id"], code=row["code"], message=row["message"], hint=row["hint"]
            )
        )
    return answers


class Queue:
    """Requests of users and of the leader to a database, at times that the test sets."""

    def __init__(self, sql: Sql) -> None:
        self.sql = sql
        self.now = NOW

    def move(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)

    # -- users ------------------------------------------------------------------------------------

    def submit(self, who: Identity = ALICE, **fields: Any) -> int:
        [answer] = submit(self.sql, a_job(**fields), who=who, now=self.now)
        assert answer.job_id is not None, answer
        return answer.job_id

    def refused(self, who: Identity = ALICE, **fields: Any) -> OdcError:
        [answer] = submit(self.sql, a_job(**fields), who=who, now=self.now)
        assert answer.job_id is None
        assert answer.code is not None
        assert answer.message
        return refusal(answer.code, answer.message, answer.hint)

    def change(
        self, verb: str, *ids: int | tuple[int, str], who: Identity = ALICE, more: str = "",
        arguments: Sequence[object] = (), **filters: Any,
    ) -> list[dict[str, Any]]:  # fmt: skip
        """ids: a job or whole array, or (array, tasks as int4multirange)."""
        if ids:
            filters["ids"] = [
                {"job_id": i, "tasks": None}
                if isinstance(i, int)
                else {"job_id": i[0], "tasks": i[1]}
                for i in ids
            ]
        actor = {"user": who.user, "uid": who.uid, "operator": who.operator}
        return json.loads(
            self.sql.value(
                f"select odc.{verb}_jobs($1::jsonb, $2::jsonb, $3{more})",
                json.dumps(actor), json.dumps(filters), self.now, *arguments,
            )
        )  # fmt: skip

    def cancel(
        self, *ids: int | tuple[int, str], signal: int | None = None, **rest: Any
    ) -> dict[int, str]:
        return _outcomes(self.change("cancel", *ids, more=", $4", arguments=[signal], **rest))

    def hold(self, *ids: int | tuple[int, str], **rest: Any) -> dict[int, str]:
        return _outcomes(self.change("hold", *ids, **rest))

    def release(self, *ids: int | tuple[int, str], **rest: Any) -> dict[int, str]:
        return _outcomes(self.change("release", *ids, **rest))

    def requeue(
        self, *ids: int | tuple[int, str], hold: bool = False, **rest: Any
    ) -> dict[int, str]:
        return _outcomes(self.change("requeue", *ids, more=", $4", arguments=[hold], **rest))

    def update(
        self, *ids: int | tuple[int, str], changes: dict[str, Any], who: Identity = ALICE
    ) -> dict[int, str]:
        return _outcomes(self.updates(*ids, changes=changes, who=who))

    def updates(
        self, *ids: int | tuple[int, str], changes: dict[str, Any], who: Identity = ALICE
    ) -> list[dict[str, Any]]:
        if isinstance(changes.get("dependency"), str):
            changes = {**changes, "dependency": dependency_json(changes["dependency"])}
        return self.change(
            "update", *ids, who=who, more=", $4::jsonb", arguments=[json.dumps(changes)]
        )

    # -- the leader -------------------------------------------------------------------------------

    def start(self) -> list[int]:
        """One pass; the ids that start."""
        return self.sql.value("select started from odc.plan_pass(0, $1)", self.now)

    def end(self, *job_ids: int, exit_code: int = 0) -> None:
        """Every member of these running jobs exits."""
        self.end_members(self.members(*job_ids), exit_code)

    def members(self, *job_ids: int) -> list[dict[str, Any]]:
        return self.sql.rows(
            "select r.job_id, r.attempt, a.rank from odc.running as r join odc.allocation as a "
            "using (job_id) where r.job_id = any ($1) order by 1, 3",
            list(job_ids),
        )

    def end_members(self, members: Sequence[Mapping[str, Any]], exit_code: int = 0) -> None:
        n = len(members)
        self.sql.rows(
            "select * from odc.record_facts(0, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
            [m["job_id"] for m in members], [m["attempt"] for m in members],
            [m["rank"] for m in members], ["exited"] * n, [self.now] * n, [exit_code] * n,
            [None] * n, [None] * n, [None] * n, self.now,
        )  # fmt: skip

    def sweep(self) -> datetime:
        return self.sql.value("select odc.sweep(0, $1)", self.now)

    # -- looking ----------------------------------------------------------------------------------

    def job(self, job_id: int) -> dict[str, Any]:
        return self.sql.row("select * from odc.job where id = $1", job_id)

    def pending(self, job_id: int) -> dict[str, Any]:
        return self.sql.row("select * from odc.pending where job_id = $1", job_id)

    def running(self, job_id: int) -> dict[str, Any]:
        return self.sql.row("select * from odc.running where job_id = $1", job_id)

    def shape(self, job_id: int) -> dict[str, Any]:
        return self.sql.row(
            "select s.* from odc.shape as s join odc.job as j on j.shape_id = s.id where j.id = $1",
            job_id,
        )

    def task(self, array_id: int, task: int) -> int:
        """The id of an array task that has its own row."""
        return self.sql.value(
            "select id from odc.job where array_job_id = $1 and array_task_id = $2", array_id, task
        )

    def waits(self, job_id: int) -> str:
        return self.pending(job_id)["dependency"]

    def state(self, job_id: int) -> str:
        return self.sql.value(
            "select coalesce(j.state, r.state, 'PENDING')::text from odc.job as j "
            "left join odc.running as r on r.job_id = j.id where j.id = $1",
            job_id,
        )

    def events(self, job_id: int) -> list[str]:
        return self.sql.values("select kind from odc.event where job_id = $1 order by id", job_id)

    def contradictions(self) -> list[str]:
        return self.sql.values("select * from odc.check_books()")


def dependency_json(text: str) -> dict[str, Any]:
    parsed = parse_dependency(text)
    return {
        "text": parsed.text,
        "any": parsed.any,
        "terms": [
            {"kind": t.kind, "target_id": t.target_id, "target_task": t.target_task,
             "delay_s": t.delay_s}
            for t in parsed.terms
        ],
    }  # fmt: skip


def _outcomes(answers: list[dict[str, Any]]) -> dict[int, str]:
    """Outcome by job id; for a refusal its code."""
    return {a["job_id"]: a["code"] or a["outcome"] for a in answers}
