"""Many waiting jobs of one user stop neither sweeps nor passes nor the ends of others' jobs.

These are statements of the leader with a time limit, and they take the turn, which every start and
end of a job needs. A statement that always takes too long is repeated forever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, cast

import pytest

from odcd.clock import SystemClock
from odcd.errors import DatabaseBusy
from odcd.loops import reconciler
from odcd.loops.lead import MAX_STARTS, Lead
from odcd.loops.reconciler import Reconciler
from odcd.slurm.dependencies import MAX_TERMS
from tests.odcd.loops.test_reconciler import Executor
from tests.support.builders.jobs import BOB, NOW, Queue, a_cluster, a_job, submit
from tests.support.harness.database import Sql

MANY, MOST = 120, 50
"""MOST: pending jobs that one sweep changes here."""
CROWD = 10_000
"""Terms of one user's waiting jobs that may have the same target."""


@pytest.fixture
def queue(database_url: str) -> Iterator[Queue]:
    with Sql(database_url) as sql:
        sql.begin()
        a_cluster(sql, h100=1)
        yield Queue(sql)
        sql.rollback()


@pytest.mark.parametrize(
    ("fields", "left"),
    [
        ({"deadline_at": NOW + timedelta(hours=1)}, "deadline_at is not null"),
        ({"begin_at": NOW + timedelta(hours=1)}, "not begun"),
    ],
)
def test_jobs_that_are_due_at_once_are_changed_in_parts(
    queue: Queue, fields: dict[str, Any], left: str
) -> None:
    """Before: one sweep ended all of them, in 47 us each. 1.3 million held jobs with one deadline,
    which a user submits in 13 minutes, take longer than the statement timeout. So no sweep would
    ever end, and each of them would hold the turn for a minute."""
    submit(queue.sql, *[a_job(hold=True, time_limit_s=60, **fields)] * MANY)
    queue.move(3601)
    count = f"select count(*) from odc.pending where {left}"
    for rest in (MANY - MOST, MANY - 2 * MOST):
        next_at = queue.sql.value("select odc.sweep(0, $1, p_most => $2)", queue.now, MOST)
        assert queue.sql.value(count) == rest
        assert next_at <= queue.now, "the next sweep follows at once"
    queue.sweep()
    assert queue.sql.value(count) == 0


def test_a_sweep_reads_no_delays_that_are_not_due(queue: Queue) -> None:
    """Before: every sweep judged all waiting terms of `after` and `singleton`, in 27 us each. 220
    jobs with 10,000 terms take longer than the statement timeout, and sweeps hold the turn."""
    job = queue.submit()
    array = queue.submit(array="0-398:2", begin_at=NOW + timedelta(days=1))
    queue.start()
    terms = [f"{job}+{minutes}" for minutes in range(2, 202)]
    terms += [f"{array}_{task}" for task in range(0, 400, 2)]
    waiting = [queue.submit(dependency=f"after:{':'.join(terms)}") for _ in range(3)]
    queue.sql.execute("set local enable_seqscan = off")
    queue.sweep()
    before = rows_read(queue)
    queue.sweep()
    assert rows_read(queue) - before < len(terms)
    queue.move(121)
    queue.sweep()
    due = "select count(*) from odc.dependency where job_id = $1 and state = 'met'"
    assert queue.sql.value(due, waiting[0]) == 1
    assert queue.waits(waiting[0]) == "waiting"


def test_a_sweep_checks_the_counts_of_a_part_of_many_arrays(queue: Queue) -> None:
    """Before: of all of them, in 21 us each. With 2 million arrays of one task, no job would start
    or end for 40 s in each sweep."""
    submit(queue.sql, *[a_job(array="0", hold=True)] * MANY)
    queue.sql.execute("update odc.pending set open_count = 0")
    repaired = [
        len(queue.sql.value("select odc._repair_arrays($1, $2)", NOW + timedelta(minutes=n), MOST))
        for n in range(1 + MANY // MOST)
    ]
    assert sum(repaired) == MANY
    assert max(repaired) <= MOST


def rows_read(queue: Queue) -> int:
    return queue.sql.value(
        "select coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) "
        "from pg_stat_xact_user_tables where schemaname = 'odc' and relname = 'dependency'"
    )


def test_few_jobs_of_one_user_wait_for_one_job(queue: Queue) -> None:
    """Before: any number did, and each took 67 us. The end of a job that 900,000 others wait for
    takes longer than the statement timeout, so it would never be recorded, and no end of any job
    after it."""
    job, other = queue.submit(hold=True), queue.submit(hold=True)
    for start in range(0, CROWD - 1, MAX_TERMS):
        count = min(MAX_TERMS, CROWD - 1 - start)
        queue.submit(dependency=f"afterany:{':'.join([str(job)] * count)}")
    queue.submit(dependency=f"afterok:{other}?afterok:{job}")
    refused = queue.refused(dependency=f"afterok:{other}?afterok:{job}")
    assert (refused.code, f"on job {job}" in refused.message) == ("OD009", True)
    queue.submit(dependency=f"afterany:{other}")
    # Another user's jobs may wait for it nevertheless.
    waiting = queue.submit(BOB, dependency=f"afterany:{other}")
    answer = queue.updates(waiting, changes={"dependency": f"afterany:{job}"}, who=BOB)
    assert answer[0]["outcome"] == "updated", answer


class Busy:
    """The session of passes, whose statement takes too long with many starts."""

    def __init__(self, fits: int) -> None:
        self.limits: list[int] = []
        self._fits = fits

    async def fetchrow(self, query: str, term: int, now: object, limit: int) -> dict[str, Any]:
        self.limits.append(limit)
        if limit > self._fits:
            raise DatabaseBusy("the database took too long")
        return {
            "started": [], "looked": 0, "more": False, "next_at": None, "decide_ms": 0.0,
            "took_ms": 0.0, "replanned": False,
        }  # fmt: skip


def test_a_pass_that_takes_too_long_starts_fewer_jobs() -> None:
    """Before: the same starts were tried again in every pass, so no job of any user started."""

    async def work() -> list[int]:
        session = Busy(fits=600)
        lead = Lead(1, cast(Any, session), SystemClock())
        for _ in range(6):
            try:
                await lead.plan_pass(NOW)
            except DatabaseBusy:
                continue
        return session.limits

    assert asyncio.run(work()) == [MAX_STARTS, 1000, 500, 1000, 500, 1000]


class BusySweeps:
    """A store whose sweeps take too long with many jobs; more jobs are always due."""

    def __init__(self, fits: int) -> None:
        self.limits: list[int] = []
        self.enough = asyncio.Event()
        self.attempts = self.leader = self
        self._fits = fits

    async def sweep(self, term: int, now: datetime, *, limit: int, **_: object) -> datetime:
        self.limits.append(limit)
        if len(self.limits) == 4:
            self.enough.set()
        if limit > self._fits:
            raise DatabaseBusy("the database took too long")
        return now

    async def take_stops(self, *_: object, **__: object) -> list[Any]:
        return []

    async def list_moved_ends(self, *_: object) -> list[Any]:
        return []


def test_a_sweep_that_takes_too_long_ends_fewer_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many jobs may wait for each of them."""
    monkeypatch.setattr(reconciler, "BUSY_RETRY_S", 0.01)

    async def work() -> list[int]:
        store = BusySweeps(fits=3000)
        loops = Reconciler(
            cast(Any, type("Lead", (), {"term": 1})()), cast(Any, store), cast(Any, Executor([])),
            SystemClock(), grace=timedelta(), node_grace=None, every=timedelta(seconds=30),
            on_change=lambda: None,
        )  # fmt: skip
        running = asyncio.create_task(loops.run())
        async with asyncio.timeout(60):
            await store.enough.wait()
        running.cancel()
        await asyncio.wait([running])
        return store.limits[:4]

    assert asyncio.run(work()) == [5000, 2500, 5000, 2500]
