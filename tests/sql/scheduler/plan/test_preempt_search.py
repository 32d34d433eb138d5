"""The jobs that preemption ends, compared with every possible set, on tiny clusters."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sql.scheduler.plan.world import EFA, NOW, UNLIMITED_S, Node, add_functions
from tests.support.harness.database import Sql
from tests.support.harness.depth import deep

QUICK = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    derandomize=True,
)
GRACES = {"quick": 10, "slow": 60}
"""The QOS that may be preempted, and the grace of their jobs."""


@dataclass(frozen=True)
class Runner:
    """A running job, with equal amounts on each node. Amounts are GPUs and CPUs."""

    nodes: tuple[str, ...]
    gpus: int
    cpus: int
    qos: str
    ran_s: int
    ends_s: float

    @property
    def cost(self) -> int:
        return self.ran_s * len(self.nodes) * (self.gpus or self.cpus)


@dataclass(frozen=True)
class Asker:
    """A pending job; urgent jobs may preempt jobs of the other QOS."""

    nodes: int
    gpus: int
    cpus: int
    limit_s: int
    urgent: bool
    exclusive: bool = False


@dataclass(frozen=True)
class World:
    nodes: list[Node]
    running: list[Runner]
    queue: list[Asker]


@dataclass(frozen=True)
class Held:
    """GPUs and CPUs of a node that are used from one time until another."""

    node: str
    gpus: int
    cpus: int
    since_s: float
    until_s: float


@st.composite
def worlds(draw: st.DrawFn, *, gangs: bool, urgent: int = 1) -> World:
    nodes = [
        Node(f"h{i}", "h100", 4, 8, 64, draw(st.sampled_from(["a", "b"])))
        for i in range(draw(st.integers(1, 4)))
    ]
    nodes += [Node(f"c{i}", "cpu-x86", 0, 8, 64) for i in range(draw(st.integers(0, 1)))]
    free = {n.name: [n.gpus, n.cpus] for n in nodes}
    running: list[Runner] = []
    for _ in range(draw(st.integers(1, 7))):
        names = draw(
            st.lists(st.sampled_from(nodes), min_size=1, max_size=2 if gangs else 1, unique=True)
        )
        gpus = draw(st.integers(0, min(free[n.name][0] for n in names)))
        most = min(free[n.name][1] for n in names)
        if most == 0:
            continue
        cpus = draw(st.integers(1, most))
        for n in names:
            free[n.name][0] -= gpus
            free[n.name][1] -= cpus
        running.append(
            Runner(
                tuple(n.name for n in names), gpus, cpus,
                draw(st.sampled_from(["quick", "slow", "slow", "slow", "kept"])),
                draw(st.sampled_from([0, 50, 100, 100, 1000, 5000])),
                draw(st.sampled_from([5.0, 30.0, 61.0, 300.0, 5000.0, UNLIMITED_S])),
            )
        )  # fmt: skip

    def ask(is_urgent: bool) -> Asker:
        return Asker(
            draw(st.sampled_from([1, 1, 2, 3] if gangs else [1])),
            draw(st.integers(0, 4)),
            draw(st.integers(1, 8)),
            draw(st.sampled_from([20, 100, 400, 10_000])),
            is_urgent,
            draw(st.integers(0, 4)) == 0,
        )

    queue = [ask(False) for _ in range(draw(st.integers(0, 2)))]
    return World(nodes, running, queue + [ask(True) for _ in range(urgent)])


class Books:
    """The amounts used at each time, and whether a job fits beside them."""

    def __init__(self, world: World) -> None:
        self.nodes = {n.name: n for n in world.nodes}
        self.running = world.running
        self.later: list[Held] = []

    def fits(self, job: Asker, at_s: float, gone: Iterable[Runner] = ()) -> list[str]:
        """Nodes that have room for a member from then on to its end, with these gone by then."""
        gone = list(gone)
        held = [
            Held(n, r.gpus, r.cpus, 0, at_s if r in gone else max(r.ends_s, 1.0))
            for r in self.running
            for n in r.nodes
        ] + self.later
        moments = {at_s} | {h.since_s for h in held if at_s < h.since_s < at_s + job.limit_s}
        return [name for name in self.nodes if self._fits(job, name, held, moments)]

    def _fits(self, job: Asker, name: str, held: list[Held], moments: set[float]) -> bool:
        node = self.nodes[name]
        gpus, cpus = (node.gpus, node.cpus) if job.exclusive else (job.gpus, job.cpus)
        if node.gpus < job.gpus or node.cpus < job.cpus:
            return False
        for at in moments:
            there = [h for h in held if h.node == name and h.since_s <= at < h.until_s]
            if sum(h.gpus for h in there) + gpus > node.gpus:
                return False
            if sum(h.cpus for h in there) + cpus > node.cpus:
                return False
        return True

    def starts(self, job: Asker, at_s: float, gone: Iterable[Runner] = ()) -> bool:
        count: Counter[object] = Counter()
        for name in self.fits(job, at_s, gone):
            node = self.nodes[name]
            whole = job.exclusive or job.gpus == node.gpus
            bound = job.nodes > 1 and whole and node.gpu_type in EFA
            # A gang with GPUs uses one type, and there is only one here.
            kind = node.gpu_type if job.nodes > 1 and job.gpus else None
            count[kind, node.domain if bound else None] += 1
        return any(n >= job.nodes for n in count.values())

    def natural(self, job: Asker) -> float:
        moments = {0.0, *(max(r.ends_s, 1.0) for r in self.running)}
        moments |= {h.since_s for h in self.later} | {h.until_s for h in self.later}
        found = (at for at in sorted(moments) if at < UNLIMITED_S and self.starts(job, at))
        return next(found, UNLIMITED_S)

    def sets(self, job: Asker, at_s: float) -> Iterator[tuple[Runner, ...]]:
        """Every set that may be ended for a start then, and that lets the job start."""
        may = [
            r for r in self.running
            if r.qos in GRACES and GRACES[r.qos] <= at_s < r.ends_s
        ]  # fmt: skip
        for count in range(len(may) + 1):
            for some in itertools.combinations(may, count):
                if self.starts(job, at_s, some):
                    yield some

    def cheapest(self, job: Asker) -> int | None:
        """The cost of the best set; None: there is none, or the job starts as soon without it."""
        costs: list[int] = []
        natural = self.natural(job)
        graces = {
            GRACES[r.qos] for r in self.running
            if r.qos in GRACES and r.ends_s > GRACES[r.qos]
        }  # fmt: skip
        for at in sorted(graces):
            if at >= natural:
                break
            costs += [sum(r.cost for r in some) for some in self.sets(job, at)]
        return min(costs, default=None)


class Plan:
    def __init__(self, sql: Sql, world: World) -> None:
        add_functions(sql)
        self.world = world
        self.running, self.queue = build(sql, world)
        row = sql.row("select * from odc.decide($1)", NOW)
        names = {r["id"]: r["name"] for r in sql.rows("select id, name from odc.node")}
        at_of = {job: at for at, job in enumerate(self.queue)}
        runner_of = dict(zip(self.running, world.running, strict=True))
        self.starts: dict[int, list[str]] = {}
        nodes = list(row["alloc_nodes"] or [])
        for job, count in zip(row["start_jobs"] or [], row["start_nodes"] or [], strict=True):
            self.starts[at_of[job]] = [names[n] for n in nodes[:count]]
            nodes = nodes[count:]
        self.heads = {
            at_of[job]: ((at - NOW).total_seconds(), [names[int(n)] for n in text.split(",")])
            for job, at, text in zip(
                row["head_jobs"] or [], row["head_ats"] or [], row["head_nodes"] or [], strict=True
            )
            if at is not None
        }
        self.victims: dict[int, list[Runner]] = {}
        for job, by, cost in zip(
            row["victim_jobs"] or [], row["victim_for"] or [], row["victim_costs"] or [],
            strict=True,
        ):  # fmt: skip
            assert cost == runner_of[job].cost * 1000
            self.victims.setdefault(at_of[by], []).append(runner_of[job])

    def books_before(self, last: int) -> Books:
        """All that comes before a job of the queue."""
        books = Books(self.world)
        for at, job in enumerate(self.world.queue[:last]):
            since, names = (
                (0.0, self.starts[at]) if at in self.starts else self.heads.get(at, (0, []))
            )
            for name in names:
                node = books.nodes[name]
                gpus, cpus = (node.gpus, node.cpus) if job.exclusive else (job.gpus, job.cpus)
                books.later.append(Held(name, gpus, cpus, since, since + job.limit_s))
        return books


def build(sql: Sql, world: World) -> tuple[list[int], list[int]]:
    """Ids of the running jobs and of the queue."""
    body = [
        {"name": n.name, "gpu_type": n.gpu_type, "gpus": n.gpus, "cpus": n.cpus, "mem_mib": n.mem,
         "efa_domain": n.domain, "declared": True}
        for n in world.nodes
    ]  # fmt: skip
    sql.execute("select odc.register_nodes(0, $1::jsonb, true, $2)", json.dumps(body), NOW)
    sql.execute(
        "insert into odc.qos (name, grace_s) select * from unnest($1::text[], $2::integer[])",
        [*GRACES, "kept"], [*GRACES.values(), 0],
    )  # fmt: skip
    sql.execute(
        "insert into odc.qos (name, preempts) select 'urgent', array_agg(id) from odc.qos "
        "where name = any ($1)",
        list(GRACES),
    )
    running = [
        sql.value(
            "select odc_test_run($1, $2, $3, $4, $5, coalesce($6::timestamptz, 'infinity'))",
            list(r.nodes), r.gpus, r.cpus, r.qos, NOW - timedelta(seconds=r.ran_s),
            NOW + timedelta(seconds=r.ends_s) if r.ends_s < UNLIMITED_S else None,
        )
        for r in world.running
    ]  # fmt: skip
    queue = [
        sql.value(
            "select odc_test_ask(odc_test_shape($1, $2, $3, 0, null, $4, null, null), $5, $6, $7)",
            a.nodes, a.gpus, a.cpus, a.exclusive, NOW - timedelta(seconds=100 - at), a.limit_s,
            "urgent" if a.urgent else "normal",
        )
        for at, a in enumerate(world.queue)
    ]  # fmt: skip
    return running, queue


def planned(sql: Sql, world: World) -> Plan:
    try:
        return Plan(sql, world)
    finally:
        sql.rollback()
        sql.begin()


def the_set_suffices_and_every_one_is_needed(plan: Plan, at: int) -> None:
    books, job, gone = plan.books_before(at), plan.world.queue[at], plan.victims[at]
    start_s, names = plan.heads[at]
    assert set(names) <= set(books.fits(job, start_s, gone))
    assert len(names) == job.nodes
    assert books.starts(job, start_s, gone)
    assert start_s < books.natural(job)
    for one in gone:
        assert one.qos in GRACES
        assert one.ends_s > start_s >= GRACES[one.qos]
        assert not books.starts(job, start_s, [r for r in gone if r is not one])


def the_cheapest_set_is_ended(sql: Sql, world: World) -> None:
    """For a gang too: with so few jobs all sets are tried. With more, its choice may cost more."""
    plan = planned(sql, world)
    last = len(world.queue) - 1
    best = None
    if last not in plan.starts:
        best = plan.books_before(last).cheapest(world.queue[last])
    assert (sum(r.cost for r in plan.victims[last]) if last in plan.victims else None) == best
    if best is not None:
        the_set_suffices_and_every_one_is_needed(plan, last)


@given(world=worlds(gangs=False))
@settings(QUICK, max_examples=40)
def test_the_cheapest_set_is_ended_for_a_job_of_one_node(sql: Sql, world: World) -> None:
    the_cheapest_set_is_ended(sql, world)


@pytest.mark.long
@given(world=worlds(gangs=True))
@settings(QUICK, max_examples=40)
def test_the_cheapest_set_is_ended_for_a_gang(sql: Sql, world: World) -> None:
    the_cheapest_set_is_ended(sql, world)


@pytest.mark.long
@given(world=st.booleans().flatmap(lambda gangs: worlds(gangs=gangs)))
@settings(QUICK, max_examples=deep(150))
def test_the_cheapest_set_is_ended_in_many_worlds(sql: Sql, world: World) -> None:
    the_cheapest_set_is_ended(sql, world)


def claims_hold(sql: Sql, world: World) -> None:
    """All end when they should, with a pass after each: every preemptor starts at its planned time,
    on its nodes, even if other jobs wait."""
    try:
        add_functions(sql)
        build(sql, world)
        claims: dict[int, tuple[float, set[int]]] = {}
        at_s = 0.0
        while True:
            now = NOW + timedelta(seconds=at_s)
            ends = sql.rows(
                "select r.job_id, r.attempt, a.rank from odc.running as r "
                "join odc.allocation as a using (job_id) where a.ends_at <= $1",
                now,
            )
            n = len(ends)
            sql.rows(
                "select * from odc.record_facts(0, $1, $2, $3, $4, $5, $6, $7, $8, $8, $9)",
                [m["job_id"] for m in ends], [m["attempt"] for m in ends],
                [m["rank"] for m in ends], ["exited"] * n, [now] * n, [0] * n, [None] * n,
                [None] * n, now,
            )  # fmt: skip
            started = sql.value("select started from odc.plan_pass(0, $1)", now)
            sql.rows("select * from odc.take_stops(0, $1)", now)
            assert sql.values("select * from odc.check_books()") == []
            for job in started:
                due_s, nodes = claims.pop(job, (at_s, set()))
                held = set(sql.values("select node_id from odc.allocation where job_id = $1", job))
                assert at_s <= due_s
                assert not nodes or held == nodes
            for row in sql.rows(
                "select p.job_id, p.claim_nodes, l.planned_start_at from odc.pending as p "
                "join odc.planned as l using (job_id) where p.claim_nodes is not null"
            ):
                due_s = (row["planned_start_at"] - NOW).total_seconds()
                first_s, nodes = claims.setdefault(row["job_id"], (due_s, set(row["claim_nodes"])))
                assert due_s == first_s > at_s
                assert nodes == set(row["claim_nodes"])
            after = sql.value(
                "select min(ends_at) from odc.allocation "
                "where ends_at > $1 and ends_at < 'infinity'",
                now,
            )
            if after is None or not claims:
                assert not claims
                break
            at_s = (after - NOW).total_seconds()
    finally:
        sql.rollback()
        sql.begin()


@pytest.mark.long
@given(world=worlds(gangs=True, urgent=3))
@settings(QUICK, max_examples=40)
def test_preemptors_start_on_what_was_freed_for_them(sql: Sql, world: World) -> None:
    claims_hold(sql, world)


@pytest.mark.long
@given(world=worlds(gangs=True, urgent=4))
@settings(QUICK, max_examples=deep(100))
def test_preemptors_start_on_what_was_freed_for_them_in_many_worlds(sql: Sql, world: World) -> None:
    claims_hold(sql, world)


def test_a_preemptor_is_not_delayed_by_a_job_planned_later(sql: Sql) -> None:
    """Found among many worlds: the first one is planned in 60 s, the next one in 10 s on that
    node."""
    whole = Asker(1, 0, 1, 20, urgent=True, exclusive=True)
    claims_hold(
        sql,
        World(
            [Node(f"h{i}", "h100", 4, 8, 64, "a") for i in range(2)],
            [
                Runner(("h1",), 0, 1, "quick", 0, 61.0),
                Runner(("h1",), 0, 1, "quick", 50, 30.0),
                Runner(("h0",), 0, 1, "slow", 0, 61.0),
            ],
            [whole] * 4,
        ),
    )
