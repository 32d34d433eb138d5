"""Passes compared with a counting reference, on clusters where placement cannot matter.

Two such clusters: equal nodes that jobs take whole, and one node that jobs share by GPUs. On both a
plan is numbers only: how many units are free when. The reference is a page of Python; it must start
the same jobs in every pass and promise the same times.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.builders.jobs import NOW, Queue, a_cluster
from tests.support.harness.database import Sql
from tests.support.harness.depth import deep

SETTINGS = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    derandomize=True,
)
EASY, NONE = 1, 0


@dataclass(frozen=True)
class Ask:
    after_s: int
    units: int
    limit_s: int
    runs_s: int


@dataclass
class Reference:
    """First come, first served; behind the first that does not fit others start if they do not
    delay it."""

    units: int
    depth: int

    def free(self, at: float, held: list[tuple[float, float, int]]) -> int:
        return self.units - sum(units for start, end, units in held if start <= at < end)

    def fits(
        self, units: int, at: float, limit: float, held: list[tuple[float, float, int]]
    ) -> bool:
        moments = {at} | {start for start, _, _ in held if at < start < at + limit}
        return all(self.free(moment, held) >= units for moment in moments)

    def plan(
        self, now: float, running: list[tuple[float, int]], queue: list[tuple[int, Ask]]
    ) -> tuple[list[int], dict[int, float]]:
        """running: end by limit, units. The jobs that start; the planned starts."""
        held = [(now, max(end, now + 1), units) for end, units in running]
        starts: list[int] = []
        planned: dict[int, float] = {}
        for job, ask in queue:
            if self.fits(ask.units, now, ask.limit_s, held):
                starts.append(job)
                held.append((now, now + ask.limit_s, ask.units))
            elif len(planned) < self.depth:
                at = min(end for _, end, _ in held if self.fits(ask.units, end, ask.limit_s, held))
                planned[job] = at
                held.append((at, at + ask.limit_s, ask.units))
        return starts, planned


asks = st.lists(
    st.builds(
        Ask,
        after_s=st.sampled_from([0, 0, 10, 45, 100]),
        units=st.integers(1, 4),
        limit_s=st.sampled_from([30, 60, 100, 250, 1000]),
        runs_s=st.sampled_from([5, 30, 60, 100, 250, 1000]),
    ),
    min_size=1,
    max_size=12,
)


def agree(sql: Sql, asks: list[Ask], depth: int, *, whole: bool) -> None:
    a_cluster(sql, **({"h100": 4} if whole else {"l4": 1}))
    sql.execute("update odc.partition set policy = 'fifo'")
    sql.execute("update odc.policy set plan_depth = $1 where name = 'fifo'", depth)
    queue, reference = Queue(sql), Reference(4, depth)
    waiting: list[tuple[int, Ask]] = []
    running: dict[int, tuple[float, float, int]] = {}
    at, now = 0.0, 0.0
    coming = []
    for ask in asks:
        at += ask.after_s
        coming.append((at, ask))
    while coming or running:
        now = min([at for at, _ in coming[:1]] + [end for end, _, _ in running.values()])
        queue.now = NOW + timedelta(seconds=now)
        ended = [job for job, (end, _, _) in running.items() if end <= now]
        for job in ended:
            del running[job]
        queue.end(*ended)
        while coming and coming[0][0] <= now:
            _, ask = coming.pop(0)
            shape = {"node_count": ask.units, "gpus_per_node": 8} if whole else {"gpus": ask.units}
            limits = {"time_limit_s": ask.limit_s, "ntasks": ask.units if whole else 1}
            waiting.append((queue.submit(**shape, **limits), ask))
        starts, planned = reference.plan(
            now, [(limit, units) for _, limit, units in running.values()], waiting
        )
        assert queue.start() == starts
        plan = {
            row["job_id"]: (row["planned_start_at"] - NOW).total_seconds()
            for row in sql.rows("select * from odc.planned")
        }
        assert plan == planned
        for job, ask in waiting:
            if job in starts:
                end = now + min(ask.runs_s, ask.limit_s)
                running[job] = (end, now + ask.limit_s, ask.units)
        waiting = [(job, ask) for job, ask in waiting if job not in starts]
    assert waiting == []


def compared(sql: Sql, asks: list[Ask], depth: int, *, whole: bool) -> None:
    try:
        agree(sql, asks, depth, whole=whole)
    finally:
        sql.rollback()
        sql.begin()


@given(asks=asks, depth=st.sampled_from([NONE, EASY]))
@settings(SETTINGS, max_examples=15)
def test_passes_over_whole_nodes_are_those_of_a_reference_that_counts(
    sql: Sql, asks: list[Ask], depth: int
) -> None:
    compared(sql, asks, depth, whole=True)


@given(asks=asks, depth=st.sampled_from([NONE, EASY]))
@settings(SETTINGS, max_examples=15)
def test_passes_over_a_shared_node_are_those_of_a_reference_that_counts(
    sql: Sql, asks: list[Ask], depth: int
) -> None:
    compared(sql, asks, depth, whole=False)


@pytest.mark.long
@given(asks=asks, depth=st.sampled_from([NONE, EASY]), whole=st.booleans())
@settings(SETTINGS, max_examples=deep(130))
def test_many_passes_are_those_of_a_reference_that_counts(
    sql: Sql, asks: list[Ask], depth: int, whole: bool
) -> None:
    compared(sql, asks, depth, whole=whole)
