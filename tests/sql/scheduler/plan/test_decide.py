"""The promises of one pass, on tiny clusters where every placement can be tried."""

from __future__ import annotations

import itertools
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sql.scheduler.plan.world import (
    NOW,
    UNLIMITED_S,
    Books,
    Held,
    Node,
    Pending,
    Shape,
    World,
    add_functions,
    build,
    roomy_worlds,
    worlds,
)
from tests.support.harness.database import Sql
from tests.support.harness.depth import deep

QUICK = settings(
    max_examples=70,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    derandomize=True,
)


class Plan:
    """A pass over a world, read back by the names of jobs (their index in the queue) and nodes."""

    def __init__(self, sql: Sql, world: World, chunk: int = 100) -> None:
        add_functions(sql)
        self.world = world
        self.ids = build(sql, world)
        self.index = {job_id: at for at, job_id in enumerate(self.ids)}
        row = sql.row("select * from odc.decide($1, p_chunk => $2)", NOW, chunk)
        names = {r["id"]: r["name"] for r in sql.rows("select id, name from odc.node")}
        masks = {r["node_id"]: r["gpu_mask"] for r in sql.rows("select * from odc.node_free")}
        self.starts: dict[int, tuple[str, ...]] = {}
        allocs = list(
            zip(
                row["alloc_nodes"] or [], row["alloc_masks"] or [], row["alloc_gpus"] or [],
                row["alloc_cpus"] or [], row["alloc_mems"] or [], strict=True,
            )
        )  # fmt: skip
        self.allocated: list[tuple[int, str, int, int, int]] = []
        for job_id, count in zip(row["start_jobs"] or [], row["start_nodes"] or [], strict=True):
            mine, allocs = allocs[:count], allocs[count:]
            at = self.index[job_id]
            self.starts[at] = tuple(names[node] for node, *_ in mine)
            for node, mask, gpus, cpus, mem in mine:
                assert mask & masks[node] == mask, "a GPU that is not free"
                assert mask.bit_count() == gpus
                masks[node] -= mask
                self.allocated.append((at, names[node], gpus, cpus, mem))
        assert not allocs
        self.heads = {
            self.index[job]: None if when is None else (when - NOW).total_seconds()
            for job, when in zip(row["head_jobs"] or [], row["head_ats"] or [], strict=True)
        }
        self.head_nodes = {
            self.index[job]: {names[int(node)] for node in nodes.split(",")} if nodes else set()
            for job, nodes in zip(row["head_jobs"] or [], row["head_nodes"] or [], strict=True)
        }
        self.order = sorted(range(len(self.ids)), key=lambda at: (world.queue[at].nice, at))

    def books(self) -> Books:
        return Books({n.name: n for n in self.world.nodes}, list(self.world.held))

    def shape(self, at: int) -> Shape:
        return self.world.queue[at].shape

    def limit(self, at: int) -> int:
        return self.world.queue[at].limit_s

    def wish(self, at: int, books: Books, at_s: float = 0.0) -> int | None:
        return books.wish(self.shape(at), at_s, self.world.lapse_s(at))


def planned(sql: Sql, world: World, chunk: int = 100) -> Plan:
    try:
        return Plan(sql, world, chunk)
    finally:
        # Hypothesis calls a test many times with one fixture.
        sql.rollback()
        sql.begin()


@given(world=worlds(), chunk=st.sampled_from([1, 2, 100]))
@QUICK
def test_a_pass_keeps_its_promises(sql: Sql, world: World, chunk: int) -> None:
    plan = planned(sql, world, chunk)
    no_node_is_promised_twice(plan)
    every_start_is_what_was_asked_for(plan)
    the_protected_start_is_the_earliest_and_nobody_delays_it(plan)
    nobody_who_could_start_waits(plan)


@given(world=roomy_worlds())
@settings(QUICK, max_examples=50)
def test_a_pass_chooses_the_best_nodes(sql: Sql, world: World) -> None:
    it_chooses_well(planned(sql, world))


@pytest.mark.long
@given(world=roomy_worlds())
@settings(QUICK, max_examples=deep(300))
def test_a_pass_chooses_the_best_nodes_in_many_worlds(sql: Sql, world: World) -> None:
    it_chooses_well(planned(sql, world))


def it_chooses_well(plan: Plan) -> None:
    every_start_is_what_was_asked_for(plan)
    the_protected_start_is_the_earliest_and_nobody_delays_it(plan)
    nobody_who_could_start_waits(plan)


@pytest.mark.long
@given(world=worlds())
@settings(QUICK, max_examples=50)
def test_a_plan_does_not_depend_on_how_it_reads_the_queue(sql: Sql, world: World) -> None:
    one, all_at_once = planned(sql, world, 1), planned(sql, world, 100)
    assert (one.starts, one.heads) == (all_at_once.starts, all_at_once.heads)


def no_node_is_promised_twice(plan: Plan) -> None:
    books = plan.books()
    for at, node, gpus, cpus, mem in plan.allocated:
        free = books.free_at(node, 0)
        assert all(want <= have for want, have in zip((gpus, cpus, mem), free, strict=True))
        books.held.append(Held(node, gpus, cpus, mem, plan.limit(at)))


def every_start_is_what_was_asked_for(plan: Plan) -> None:
    books = plan.books()
    free = True
    for at in sorted(plan.starts, key=plan.order.index):
        shape, names = plan.shape(at), plan.starts[at]
        assert len(set(names)) == len(names)
        assert shape.nodes <= len(names) <= (shape.most or shape.nodes)
        wish = plan.wish(at, books)
        allowed = {tuple(sorted(p)) for p in books.placements(shape, count=len(names), wish=wish)}
        assert tuple(sorted(names)) in allowed
        free = free and not any(plan.order.index(h) < plan.order.index(at) for h in plan.heads)
        if free:
            it_takes_as_many_as_fit_in_few_blocks(plan, books, at, names)
            it_takes_the_fullest_or_the_emptiest(plan, books, at, names)
        books.place(shape, names, plan.limit(at))


def it_takes_as_many_as_fit_in_few_blocks(
    plan: Plan, books: Books, at: int, names: tuple[str, ...]
) -> None:
    """For a job without protected jobs ahead of it."""
    shape, wish = plan.shape(at), plan.wish(at, books)
    if shape.most is not None and len(names) < shape.most:
        assert not any(True for _ in books.placements(shape, count=len(names) + 1, wish=wish))
    whole = shape.exclusive or shape.gpus == books.nodes[names[0]].gpus > 0
    if shape.gang and whole and books.blocks_known():
        domain = next(d for d in books.domains(shape, 0).values() if set(names) <= set(d))
        fewest = min(map(books.blocks, itertools.combinations(domain, len(names))))
        assert books.blocks(names) == fewest


def it_takes_the_fullest_or_the_emptiest(
    plan: Plan, books: Books, at: int, names: tuple[str, ...]
) -> None:
    """For a job without protected jobs ahead of it and without a switches request."""
    shape = plan.shape(at)
    if shape.gang and (plan.wish(at, books) or any(map(books.block_counts(shape), names))):
        return
    [domain] = [d for d in books.domains(shape, 0).values() if set(names) <= set(d)]

    def place(name: str) -> tuple[bool, int]:
        """Nodes without GPUs first, then by how full they are."""
        node, (gpus, cpus, _) = books.nodes[name], books.free_at(name, 0)
        level = gpus if node.gpus else -(-8 * cpus // node.cpus)
        return node.gpus > 0, -level if plan.world.placement == "spread" else level

    assert sorted(map(place, names)) == sorted(map(place, domain))[: len(names)]


def the_protected_start_is_the_earliest_and_nobody_delays_it(plan: Plan) -> None:
    for head, wait_s in plan.heads.items():
        before = plan.books()
        place = plan.order.index(head)
        for at in plan.order[:place]:
            if at in plan.starts:
                before.place(plan.shape(at), plan.starts[at], plan.limit(at))
        assert before.earliest(plan.shape(head), plan.world.lapse_s(head)) == wait_s
        if wait_s is not None:
            after = before.copy()
            for at in plan.order[place:]:
                if at in plan.starts:
                    after.place(plan.shape(at), plan.starts[at], plan.limit(at))
            wish = plan.wish(head, after, wait_s)
            assert after.can_start(plan.shape(head), wait_s, wish), (
                "a later job delays a protected start"
            )


def nobody_who_could_start_waits(plan: Plan) -> None:
    """No waiting job could start now without delaying a protected job ahead of it."""
    after = plan.books()
    for at, names in plan.starts.items():
        after.place(plan.shape(at), names, plan.limit(at))
    for at in plan.order:
        if at in plan.starts:
            continue
        place = plan.order.index(at)
        heads = {
            head: wait_s
            for head, wait_s in plan.heads.items()
            if wait_s is not None and plan.order.index(head) < place
        }
        for names in after.placements(plan.shape(at), wish=plan.wish(at, after)):
            tried = after.copy()
            tried.place(plan.shape(at), names, plan.limit(at))
            assert any(
                not _still(tried, plan.shape(head), wait_s, after)
                # The nodes of a job with a switches request are fixed.
                or (plan.wish(head, after, wait_s) and plan.head_nodes[head] & set(names))
                for head, wait_s in heads.items()
            ), f"job {at} could start on {names}"


def _still(tried: Books, head: Shape, wait_s: float, before: Books) -> bool:
    """Can the protected job start at its moment, in a domain in which it could have before?"""
    domains = before.domains(head, wait_s)
    now = tried.domains(head, wait_s)
    # The plan chose one domain; the test does not know which, so all of them must be possible.
    return all(
        len(now.get(name, ())) >= head.nodes
        for name, nodes in domains.items()
        if len(nodes) >= head.nodes
    )


def h100s(count: int, domain: str = "a") -> list[Node]:
    return [Node(f"h{i}", "h100", 4, 16, 64, domain) for i in range(count)]


ONE = Shape(1, 1, 1, 1, "h100")


def test_a_one_node_job_takes_the_fullest_node_that_fits(sql: Sql) -> None:
    world = World(h100s(3), [Held("h1", 2, 2, 2, 60), Held("h2", 3, 2, 2, 60)], [Pending(ONE, 60)])
    assert planned(sql, world).starts == {0: ("h2",)}


def test_gpus_of_different_nodes_are_never_added_up(sql: Sql) -> None:
    held = [Held("h0", 2, 1, 1, 60), Held("h1", 2, 1, 1, 90)]
    plan = planned(sql, World(h100s(2), held, [Pending(replace(ONE, gpus=4), 60)]))
    assert plan.starts == {}
    assert plan.heads == {0: 60.0}


def test_a_job_behind_the_protected_one_starts_if_it_ends_before(sql: Sql) -> None:
    whole = replace(ONE, gpus=4)
    held = [Held("h0", 2, 1, 1, 60)]
    queue = [Pending(whole, 500), Pending(ONE, 61), Pending(ONE, 60)]
    plan = planned(sql, World(h100s(1), held, queue))
    assert plan.heads == {0: 60.0}
    assert plan.starts == {2: ("h0",)}


def test_a_long_job_starts_beside_the_protected_one_where_room_is_left(sql: Sql) -> None:
    held = [Held("h0", 3, 1, 1, 60)]
    queue = [Pending(replace(ONE, gpus=3), 500), Pending(ONE, 1000), Pending(ONE, 1000)]
    plan = planned(sql, World(h100s(1), held, queue))
    assert plan.heads == {0: 60.0}
    assert plan.starts == {1: ("h0",)}


def test_a_gang_of_whole_efa_nodes_stays_in_one_domain(sql: Sql) -> None:
    nodes = [
        Node("a0", "h100", 4, 16, 64, "a"),
        Node("a1", "h100", 4, 16, 64, "a"),
        Node("b0", "h100", 4, 16, 64, "b"),
        Node("b1", "h100", 4, 16, 64, "b"),
        Node("b2", "h100", 4, 16, 64, "b"),
    ]
    gang = Shape(2, 4, 1, 1, "h100")
    # The smallest sufficient domain is chosen, which keeps the larger one whole.
    assert planned(sql, World(nodes, [], [Pending(gang, 60)])).starts == {0: ("a0", "a1")}
    held = [Held("a0", 1, 1, 1, 60), Held("b0", 1, 1, 1, 90), Held("b1", 1, 1, 1, 90)]
    plan = planned(sql, World(nodes, held, [Pending(gang, 60)]))
    assert plan.starts == {}
    assert plan.heads == {0: 60.0}


def test_a_job_without_a_possible_start_blocks_no_job(sql: Sql) -> None:
    held = [Held("h0", 3, 1, 1, UNLIMITED_S)]
    queue = [Pending(replace(ONE, gpus=2), 60), Pending(ONE, UNLIMITED_S)]
    plan = planned(sql, World(h100s(1), held, queue))
    assert plan.heads == {0: None}
    assert plan.starts == {1: ("h0",)}


def test_no_start_is_planned_after_a_job_without_a_time_limit(sql: Sql) -> None:
    sql.execute("update odc.partition set policy = 'fifo'")
    sql.execute("update odc.policy set plan_depth = 5 where name = 'fifo'")
    held = [Held("h0", 4, 1, 1, 60)]
    queue = [Pending(replace(ONE, gpus=4), UNLIMITED_S) for _ in range(4)]
    plan = planned(sql, World(h100s(1), held, queue))
    assert plan.starts == {}
    assert plan.heads == {0: 60.0, 1: None}


def test_types_do_not_wait_for_one_another(sql: Sql) -> None:
    nodes = [*h100s(1), Node("l0", "l4", 2, 8, 32)]
    held = [Held("h0", 4, 1, 1, 60)]
    queue = [Pending(ONE, 60), Pending(Shape(1, 2, 1, 1, "l4"), 1000)]
    plan = planned(sql, World(nodes, held, queue))
    assert plan.heads == {0: 60.0}
    assert plan.starts == {1: ("l0",)}


def test_nice_comes_before_age(sql: Sql) -> None:
    whole = replace(ONE, gpus=4)
    plan = planned(sql, World(h100s(1), [], [Pending(whole, 60, nice=1), Pending(whole, 60)]))
    assert plan.starts == {1: ("h0",)}


def test_a_job_without_gpus_fills_nodes_without_gpus_first(sql: Sql) -> None:
    nodes = [*h100s(1), Node("c0", "cpu-x86", 0, 8, 32)]
    queue = [Pending(Shape(1, 0, 8, 1), 60), Pending(Shape(1, 0, 8, 1), 60)]
    assert planned(sql, World(nodes, [], queue)).starts == {0: ("c0",), 1: ("h0",)}
