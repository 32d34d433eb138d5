"""A queue with events, and an independent count of them beside the tally."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

import pytest

from odcd.errors import LeadershipLost
from tests.support.builders.jobs import ALICE, BOB, ROOT, Queue, a_cluster
from tests.support.harness.database import Sql

T = TypeVar("T")


class Counted:
    """A queue with events, and the counts that the tally must have, computed from other tables."""

    def __init__(self, sql: Sql, late: Sql) -> None:
        self.sql = sql
        self.late = late
        self.queue = Queue(sql)
        self.term = 0
        self.submitted = 0
        self.started = 0
        self.orphans = 0
        self.gpu_s = 0.0
        self._open = False
        a_cluster(sql, h100=2, t4=1)

    def happen(self, step: str, chance: random.Random) -> None:
        queue = self.queue
        running = self.sql.values("select job_id from odc.running order by 1")
        pending = self.sql.values("select job_id from odc.pending order by 1")
        if step == "submit":
            queue.submit(chance.choice((ALICE, BOB)), gpus=chance.choice((0, 1, 8)))
            self.submitted += 1
        elif step == "gang":
            queue.submit(node_count=2, gpus_per_node=8, gpu_type="h100")
            self.submitted += 1
        elif step == "array":
            queue.submit(array="0-4", gpus=1)
            self.submitted += 5
        elif step == "start":
            self.started += len(queue.start())
        elif step in ("end", "fail") and running:
            queue.end(chance.choice(running), exit_code=int(step == "fail"))
        elif step == "cancel" and pending:
            queue.cancel(chance.choice(pending), who=ROOT)
        elif step == "cancel_task":
            ranges = self.sql.values(
                "select job_id from odc.pending where tasks @> 2 and tasks @> 3 order by 1"
            )
            if ranges:
                queue.cancel((ranges[0], "{[2,4)}"), who=ROOT)
        elif step == "requeue" and running:
            job_id = chance.choice(running)
            queue.requeue(job_id, who=ROOT)
            queue.end(job_id)
        elif step == "move":
            queue.move(chance.choice((1, 30, 5000)))
        elif step == "late":
            self.commit_late()
            self.late.begin()
            self._open = True
            self.orphan(self.late)
        elif step == "fold":
            self.fold(chance.choice((1, 3, 1000)))
        elif step == "fold_cut_off":
            self.sql.begin()
            self.fold(1000)
            self.sql.rollback()
        elif step == "lead":
            self.sql.execute("update odc.term set term = term + 1")
            with pytest.raises(LeadershipLost):
                self.fold(1000)
            self.sql.execute("update odc.term set term = term - 1")

    def orphan(self, sql: Sql) -> None:
        sql.execute(
            "insert into odc.event (at, kind, actor, detail) "
            "values ($1, 'orphan', 'odcd', '{\"name\": \"odc-1-1-0\"}')",
            self.queue.now,
        )
        self.orphans += 1

    def commit_late(self) -> None:
        if self._open:
            self.late._run("commit")
            self.late._in_transaction = False
            self._open = False

    def fold(self, limit: int) -> int:
        folded = self.sql.value(
            "select odc.fold_tally($1, $2, $3)", self.term, limit, self.queue.now
        )
        gpu_seconds = self.total("odcd_gpu_seconds_total")
        assert gpu_seconds >= self.gpu_s or self.sql._in_transaction, "a counter must not go back"
        if not self.sql._in_transaction:
            self.gpu_s = gpu_seconds
        return folded

    def fold_whole(self, limit: int) -> int:
        """Fold when no event is hidden: one statement sees the others' transactions but once."""
        return self.until(
            lambda: self.sql.value(
                "select case when not exists (select from odc.event where xid >= "
                "odc._final_below()) then odc.fold_tally($1, $2, $3) end",
                self.term, limit, self.queue.now,
            )
        )  # fmt: skip

    def until(self, look: Callable[[], T]) -> T:
        """Repeat look() until it returns something. A transaction of another database that is open
        while events are read hides them, because it could belong to this database."""
        deadline = time.monotonic() + 60
        while not (found := look()):
            assert time.monotonic() < deadline, "a transaction stays open"
            time.sleep(0.02)
        return found

    def fold_all(self) -> None:
        """All that is committed is counted, unless what is to be committed late hides it."""
        if self._open:
            while self.fold(1000):
                pass
        else:
            self.until(self._all_folded)

    def _all_folded(self) -> bool:
        while self.fold(1000):
            pass
        return not self.sql.value(
            "select exists (select from odc.event as e, odc.tally_event as t "
            "where (e.xid, e.id) > (t.xid, t.event_id))"
        )

    def total(self, metric: str) -> float:
        return self.sql.value(
            "select coalesce(sum(value), 0) from odc.measure_tally($1) where metric = $2",
            self.queue.now, metric,
        )  # fmt: skip

    def by(self, metric: str, label: int) -> dict[str, float]:
        rows = self.sql.rows(
            "select labels[$3] as label, sum(value) as value from odc.measure_tally($1) "
            "where metric = $2 group by 1 having sum(value) > 0",
            self.queue.now, metric, label,
        )  # fmt: skip
        return {row["label"]: row["value"] for row in rows}

    def check(self) -> None:
        self.commit_late()
        self.fold_all()
        finished = self.sql.rows(
            "select state::text as state, "
            "sum(coalesce(odc._task_count(odc._tasks_of(array_tasks)), 1)) as jobs "
            "from odc.job where state is not null group by 1"
        )
        assert self.by("odcd_jobs_finished_total", 1) == {r["state"]: r["jobs"] for r in finished}
        assert self.total("odcd_jobs_submitted_total") == self.submitted
        assert self.total("odcd_jobs_started_total") == self.started
        assert self.total("odcd_orphans_found_total") == self.orphans
        assert self.total("odcd_job_queue_wait_seconds_count") == self.started
        requeued = self.sql.value("select count(*) from odc.attempt where requeued")
        assert self.total("odcd_job_requeues_total") == requeued
        live = self.sql.value(
            "select sum(value) from odc.measure_queue($1) where metric = 'odcd_jobs'",
            self.queue.now,
        )
        assert live == self.submitted - self.total("odcd_jobs_finished_total")
        # An independent record, written when attempts end.
        held = self.sql.value("select sum(total_gpu_ms) / 1000.0 from odc.usage") or 0
        ended = self.sql.value(
            "select coalesce(sum(value), 0) / 1000.0 from odc.tally "
            "where metric = 'odcd_gpu_seconds_total'"
        )
        assert float(ended) == float(held)
