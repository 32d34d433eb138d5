"""Jobs that ended days ago, in a separate database."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from tests.support.builders.jobs import NOW, Queue, a_cluster
from tests.support.harness.database import Sql

ALL = "odc.job", "odc.attempt", "odc.event", "odc.job_text", "odc.prediction"


class Site:
    """`old` jobs ended 100 days before the clock, the others yesterday."""

    def __init__(self, sql: Sql, old: int = 5, recent: int = 3) -> None:
        a_cluster(sql, h100=4)
        self.sql = sql
        self.queue = Queue(sql)
        self.queue.now = NOW - timedelta(days=100)
        self.old = self.ran(old)
        self.queue.now = NOW - timedelta(days=1)
        self.recent = self.ran(recent)
        self.queue.now = NOW
        # As if the metrics had been folded: events that are not counted yet are not deleted.
        sql.execute("update odc.tally_event set xid = pg_current_xact_id(), event_id = 1000000")

    def ran(self, count: int, **fields: Any) -> list[int]:
        jobs = [
            self.queue.submit(gpus=1, script=f"#!/bin/sh\n# {self.queue.now} {n}\n", **fields)
            for n in range(count)
        ]
        self.finish()
        return jobs

    def finish(self) -> None:
        while started := self.queue.start():
            self.queue.move(5)
            self.queue.end(*started)

    def rows(self, ids: Sequence[int]) -> dict[str, int]:
        """Rows of these jobs, by table; tables without any are left out."""
        tables = self.sql.rows("select name, key from odc.history_tables()")
        counts = {
            t["name"]: self.sql.value(
                f"select count(*) from odc.{t['name']} where {t['key']} = any ($1)", list(ids)
            )
            for t in tables
        }
        return {name: count for name, count in counts.items() if count}

    def jobs(self) -> list[int]:
        return self.sql.values("select id from odc.job order by id")
