"""Limits and licences over time, compared with a reference that counts.

On one node that jobs share by GPUs, a plan is numbers only: how much of the node, of each licence
and of each limit is free when. The reference is a page of Python; it must start the same jobs in
every pass and promise the same times. On several nodes, every plan is audited instead.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings

from tests.sql.limits.account.books import a_limit, an_account
from tests.sql.limits.licence.test_licences import put
from tests.sql.scheduler.plan.limits_world import GPUS, Ask, Rules, asks, possible, rules, whole
from tests.support.builders.jobs import NOW, Queue, a_cluster
from tests.support.harness.database import Sql
from tests.support.harness.depth import deep

SETTINGS = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    derandomize=True,
)
NONE, EASY, ALL = 0, 1, 1_000_000


@dataclass(frozen=True)
class Span:
    start: float
    end: float
    uses: Mapping[str, int]


@dataclass
class Reference:
    """First come, first served; a job behind a protected one starts if it does not delay it."""

    totals: dict[str, int]
    depth: int
    spans: list[Span] = field(default_factory=list)

    def free(self, what: str, at: float) -> int:
        return self.totals[what] - sum(
            span.uses.get(what, 0) for span in self.spans if span.start <= at < span.end
        )

    def lacks(self, uses: Mapping[str, int], at: float, limit_s: float) -> list[str]:
        """Of what too little is free at some moment of this time."""
        moments = {at} | {s.start for s in self.spans if at < s.start < at + limit_s}
        return [
            what
            for what, need in uses.items()
            if what in self.totals and any(self.free(what, moment) < need for moment in moments)
        ]

    def plan(
        self, now: float, running: list[tuple[float, Ask]], queue: list[tuple[int, Ask]]
    ) -> tuple[list[int], dict[int, float]]:
        """running: end by limit. The jobs that start; the planned starts."""
        self.spans = [Span(now, max(end, now + 1), whole(ask)) for end, ask in running]
        starts: list[int] = []
        planned: dict[int, float] = {}
        claims: Counter[str] = Counter()
        for job, ask in queue:
            lacks = self.lacks(whole(ask), now, ask.limit_s)
            # A job that lacks a limit claims this; only one that lacks just nodes claims nodes.
            lacked = [what for what in lacks if what != GPUS] or lacks
            at = now
            if not lacks:
                starts.append(job)
            elif any(claims[what] >= self.depth for what in [GPUS, *lacked]):
                continue
            else:
                claims.update(lacked)
                moments = sorted({span.end for span in self.spans})
                at = next(m for m in moments if not self.lacks(whole(ask), m, ask.limit_s))
                planned[job] = at
            self.spans.append(Span(at, at + ask.limit_s, whole(ask)))
        return starts, planned


@contextmanager
def a_queue(sql: Sql, rules: Rules, **nodes: int) -> Iterator[Queue]:
    try:
        a_cluster(sql, **nodes)
        sql.execute("update odc.partition set policy = 'fifo'")
        sql.execute("update odc.policy set plan_depth = $1 where name = 'fifo'", rules.depth)
        queue = Queue(sql)
        for name, total in rules.licences.items():
            put(queue, name, total)
        lab = an_account(sql, "lab")
        for (per, what), value in rules.limits.items():
            a_limit(sql, "account", lab, per, what, value)
        yield queue
    finally:
        sql.rollback()
        sql.begin()


def submit(queue: Queue, ask: Ask) -> int:
    return queue.submit(
        ask.who,
        node_count=ask.nodes,
        gpus_per_node=ask.gpus,
        account="lab",
        licences=dict(ask.licences) or None,
        time_limit_s=ask.limit_s,
    )


def planned(queue: Queue) -> dict[int, float]:
    rows = queue.sql.rows("select job_id, planned_start_at from odc.planned")
    return {row["job_id"]: (row["planned_start_at"] - NOW).total_seconds() for row in rows}


@dataclass
class Run:
    """Passes over jobs that come and end; each yields the time, what ran, waited, started."""

    queue: Queue
    asks: list[Ask]

    def passes(
        self,
    ) -> Iterator[tuple[float, dict[int, tuple[float, Ask]], list[tuple[int, Ask]], list[int]]]:
        at, now = 0.0, 0.0
        coming: list[tuple[float, Ask]] = []
        for ask in self.asks:
            at += ask.after_s
            coming.append((at, ask))
        waiting: list[tuple[int, Ask]] = []
        running: dict[int, tuple[float, Ask]] = {}
        ends: dict[int, float] = {}
        while coming or running:
            now = min([at for at, _ in coming[:1]] + list(ends.values()))
            self.queue.now = NOW + timedelta(seconds=now)
            ended = [job for job, end in ends.items() if end <= now]
            for job in ended:
                del running[job], ends[job]
            self.queue.end(*ended)
            while coming and coming[0][0] <= now:
                ask = coming.pop(0)[1]
                waiting.append((submit(self.queue, ask), ask))
            starts = self.queue.start()
            yield now, dict(running), list(waiting), starts
            for job, ask in waiting:
                if job in starts:
                    running[job] = (now + ask.limit_s, ask)
                    ends[job] = now + ask.part_run * ask.limit_s
            waiting = [(job, ask) for job, ask in waiting if job not in starts]
        assert waiting == [], "a job waits although nothing runs"


def agree(sql: Sql, asks: list[Ask], rules: Rules) -> None:
    reference = Reference({**rules.totals(), GPUS: 4}, rules.depth)
    with a_queue(sql, rules, l4=1) as queue:
        for now, running, waiting, starts in Run(queue, possible(asks, rules)).passes():
            expected = reference.plan(now, list(running.values()), waiting)
            assert (starts, planned(queue)) == expected


def audit(sql: Sql, asks: list[Ask], rules: Rules) -> None:
    """No limit is exceeded at any moment of a plan, and no job starts later than planned, if jobs
    end at their limits and every job ahead of it starts or has a planned start, too."""
    totals = rules.totals()
    promised: dict[int, float] = {}
    asks = [Ask(**{**vars(ask), "part_run": 1.0}) for ask in possible(asks, rules)]
    with a_queue(sql, rules, l4=2) as queue:
        for now, running, waiting, starts in Run(queue, asks).passes():
            plan = planned(queue) | dict.fromkeys(starts, now)
            spans = [Span(now, max(end, now + 1), ask.uses()) for end, ask in running.values()]
            spans += [
                Span(plan[job], plan[job] + ask.limit_s, ask.uses())
                for job, ask in waiting
                if job in plan
            ]
            books = Reference({**totals, GPUS: 8}, rules.depth, spans)
            for what in totals:
                assert all(books.free(what, moment.start) >= 0 for moment in spans), what
            for job, at in promised.items():
                assert plan.get(job, float("inf")) <= max(at, now), f"job {job} slipped"
            promised = {}
            for job, _ in waiting:
                if job not in plan:
                    break
                if job not in starts:
                    promised[job] = plan[job]


@given(asks=asks(gangs=False), rules=rules([NONE, EASY]))
@settings(SETTINGS, max_examples=20)
def test_passes_with_limits_are_those_of_a_reference_that_counts(
    sql: Sql, asks: list[Ask], rules: Rules
) -> None:
    agree(sql, asks, rules)


@pytest.mark.long
@given(asks=asks(gangs=False), rules=rules([NONE, EASY]))
@settings(SETTINGS, max_examples=deep(200))
def test_many_passes_with_limits_are_those_of_a_reference_that_counts(
    sql: Sql, asks: list[Ask], rules: Rules
) -> None:
    agree(sql, asks, rules)


@given(asks=asks(gangs=True), rules=rules([EASY, 2, ALL]))
@settings(SETTINGS, max_examples=20)
def test_no_plan_exceeds_a_limit_or_delays_a_planned_start(
    sql: Sql, asks: list[Ask], rules: Rules
) -> None:
    audit(sql, asks, rules)


@pytest.mark.long
@given(asks=asks(gangs=True), rules=rules([EASY, 2, ALL]))
@settings(SETTINGS, max_examples=deep(200))
def test_no_plan_of_many_exceeds_a_limit_or_delays_a_planned_start(
    sql: Sql, asks: list[Ask], rules: Rules
) -> None:
    audit(sql, asks, rules)
