"""Gangs: one type of GPU, one domain, few blocks, as many nodes as fit."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.sql.scheduler.plan.test_decide import Plan, planned
from tests.sql.scheduler.plan.world import NOW, Held, Node, Pending, Shape, World
from tests.support.harness.database import Sql


def whole(nodes: int, **more: object) -> Shape:
    return replace(Shape(nodes, 4, 1, 1, "h100"), **more)


def h100(name: str, block: str | None, domain: str = "a") -> Node:
    return Node(name, "h100", 4, 16, 64, domain, block)


def started(sql: Sql, nodes: list[Node], *queue: Pending, held: tuple[Held, ...] = ()) -> Plan:
    return planned(sql, World(nodes, list(held), list(queue)))


@settings(
    max_examples=200, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(
    blocks=st.lists(st.integers(1, 4), min_size=1, max_size=8),
    want=st.integers(1, 8),
    most=st.none() | st.integers(1, 3),
)
def test_the_fewest_blocks_with_the_most_room_are_chosen(
    sql: Sql, blocks: list[int], want: int, most: int | None
) -> None:
    nodes = list(range(1, len(blocks) + 1))
    chosen = sql.value("select odc._choose_blocks($1, $2, $3, $4)", nodes, blocks, want, most)
    assert len(set(chosen)) == len(chosen) <= want
    allowed = [
        some
        for count in range(len(nodes) + 1)
        for some in itertools.combinations(nodes, min(count, want))
        if most is None or len({blocks[n - 1] for n in some}) <= most
    ]
    largest = max(map(len, allowed))
    assert len(chosen) == largest
    fewest = min(len({blocks[n - 1] for n in some}) for some in allowed if len(some) == largest)
    assert len({blocks[n - 1] for n in chosen}) == fewest


def test_a_gang_lies_in_the_fewest_blocks(sql: Sql) -> None:
    nodes = [h100(f"n{i}", block) for i, block in enumerate(["x", "y", "y", "z", "x", "y", "z"])]
    plan = started(sql, nodes, Pending(whole(3), 60), Pending(whole(2), 60))
    # Three fill a block; two take one of two nodes.
    assert plan.starts == {0: ("n1", "n2", "n5"), 1: ("n0", "n4")}


@settings(
    max_examples=25, deadline=None, derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)  # fmt: skip
@given(
    places=st.lists(st.tuples(st.sampled_from("uvwxyz"), st.booleans()), min_size=4, max_size=10),
    want=st.integers(2, 5),
)
def test_a_gang_lies_in_as_few_blocks_as_any_choice_of_free_nodes(
    sql: Sql, places: list[tuple[str, bool]], want: int
) -> None:
    block = {f"n{i}": name for i, (name, _) in enumerate(places)}
    free = [f"n{i}" for i, (_, is_free) in enumerate(places) if is_free]
    held = tuple(Held(name, 4, 1, 1, 90) for name in block if name not in free)
    nodes = [h100(name, where) for name, where in block.items()]
    if len(nodes) < want:
        return
    starts = started(sql, nodes, Pending(whole(want), 60), held=held).starts
    choices = [len({block[name] for name in some}) for some in itertools.combinations(free, want)]
    assert bool(starts) == bool(choices)
    if starts:
        assert len({block[name] for name in starts[0]}) == min(choices)


def test_a_gang_stays_in_one_zone_and_placement_group(sql: Sql) -> None:
    body = [
        {"name": f"n{i}", "gpu_type": "h100", "gpus": 8, "cpus": 16, "mem_mib": 64, "zone": zone,
         "efa_domain": group}
        for i, (zone, group) in enumerate([("a", "p"), ("b", "p"), ("a", None), ("a", "q")])
    ]  # fmt: skip
    sql.execute("select odc.register_nodes(0, $1::jsonb, true, $2)", json.dumps(body), NOW)
    domains = sql.values("select efa_domain from odc.node_group order by 1")
    assert domains == ["a", "a/p", "a/q", "b/p"]


def test_a_gang_waits_for_nodes_of_one_zone(sql: Sql) -> None:
    """MNE-02: free nodes of two zones are not added up."""
    nodes = [h100(f"{zone}{i}", None, zone) for zone in ("a", "b") for i in range(2)]
    busy = [Held(name, 4, 1, 1, 90) for name in ("a1", "b1")]
    assert started(sql, nodes, Pending(whole(2), 60), held=tuple(busy)).starts == {}
    plan = started(sql, nodes, Pending(whole(2), 60), held=(busy[0],))
    assert plan.starts == {0: ("b0", "b1")}


def test_a_gang_of_any_type_has_one_type(sql: Sql) -> None:
    nodes = [h100("h0", None), h100("h1", None), Node("l0", "l4", 2, 8, 32)]
    two = Shape(2, 1, 1, 1)
    assert started(sql, nodes, Pending(two, 60)).starts == {0: ("h0", "h1")}
    # l0 has another type than h0: the gang waits for h1.
    plan = started(sql, nodes, Pending(two, 60), held=(Held("h1", 4, 1, 1, 90),))
    assert (plan.starts, plan.heads, plan.head_nodes) == ({}, {0: 90.0}, {0: {"h0", "h1"}})


def test_a_gang_of_any_type_takes_the_one_with_the_least_memory(sql: Sql) -> None:
    nodes = [h100("h0", None), h100("h1", None), *(Node(f"l{i}", "l4", 2, 8, 32) for i in (0, 1))]
    assert started(sql, nodes, Pending(Shape(2, 1, 1, 1), 60)).starts == {0: ("l0", "l1")}


def test_a_range_takes_as_many_as_fit_now(sql: Sql) -> None:
    nodes = [h100(f"n{i}", None) for i in range(3)]
    plan = started(sql, nodes, Pending(whole(2, most=4), 60), Pending(whole(1, most=2), 60))
    assert len(plan.starts[0]) == 3
    # A job that did not start is protected with its minimum number of nodes.
    assert plan.heads == {1: 60.0}
    assert len(plan.head_nodes[1]) == 1


def test_a_range_goes_where_most_fit(sql: Sql) -> None:
    nodes = [h100("a0", None), h100("a1", None), *(h100(f"b{i}", None, "b") for i in range(3))]
    nodes += [Node(f"l{i}", "l4", 2, 8, 32) for i in range(4)]
    assert started(sql, nodes, Pending(whole(2, most=5), 60)).starts == {0: ("b0", "b1", "b2")}
    # A gang of any type too, although h100 has more memory.
    plan = started(sql, nodes, Pending(Shape(2, 1, 1, 1, most=5), 60))
    assert plan.starts == {0: ("a0", "a1", "b0", "b1", "b2")}


@pytest.mark.parametrize("per", ["user", "job"])
@pytest.mark.parametrize(
    ("what", "value", "nodes"), [("gpus", 12, 3), ("nodes", 2, 2), ("cpus", 9, 4), ("gpus", 8, 2)]
)
def test_a_range_stays_within_limits(sql: Sql, per: str, what: str, value: int, nodes: int) -> None:
    cluster = [h100(f"n{i}", None) for i in range(6)]
    sql.execute("insert into odc.resource_limit values ('qos', 1, $1, $2, $3)", per, what, value)
    gang, one = whole(2, cpus=2, most=5), replace(whole(1), cpus=2)
    plan = started(sql, cluster, Pending(gang, 60), Pending(one, 60))
    assert len(plan.starts[0]) == nodes
    # The amount that the range took counts against the limit.
    left = value - nodes * {"gpus": 4, "nodes": 1, "cpus": 2}[what]
    assert (1 in plan.starts) == (per == "job" or left >= {"gpus": 4, "nodes": 1, "cpus": 2}[what])


def test_a_gang_waits_for_few_blocks(sql: Sql) -> None:
    nodes = [h100("x0", "x"), h100("x1", "x"), h100("y0", "y")]
    held = (Held("x0", 1, 1, 1, 600),)
    wish = whole(2, switches=1)
    plan = started(sql, nodes, Pending(wish, 60), held=held)
    assert (plan.starts, plan.heads, plan.head_nodes) == ({}, {0: 600.0}, {0: {"x0", "x1"}})
    # Its nodes are kept for it, the others are not.
    behind = Pending(replace(whole(1), cpus=2), 1000)
    plan = started(sql, nodes, Pending(wish, 60), behind, behind, held=held)
    assert plan.starts == {1: ("y0",)}


def test_a_switches_request_expires(sql: Sql) -> None:
    nodes = [h100("x0", "x"), h100("x1", "x"), h100("y0", "y")]
    held = (Held("x0", 1, 1, 1, 600),)
    late = whole(2, switches=1, switches_wait_s=1800 + 100)
    assert started(sql, nodes, Pending(late, 60), held=held).heads == {0: 100.0}
    over = whole(2, switches=1, switches_wait_s=1800)
    assert started(sql, nodes, Pending(over, 60), held=held).starts == {0: ("x1", "y0")}
    # The next pass is due then.
    lapses = NOW + timedelta(seconds=100)
    Plan(sql, World(nodes, list(held), [Pending(late, 60)]), 100)
    chances = [sql.value("select odc._next_chance($1)", now) for now in (NOW, lapses)]
    assert chances == [lapses, None]


def test_a_switches_request_has_no_effect_without_known_blocks(sql: Sql) -> None:
    nodes = [Node("t0", "t4", 2, 8, 32, "a"), Node("t1", "t4", 2, 8, 32, "b")]
    wish = Shape(2, 2, 1, 1, "t4", switches=1)
    assert set(started(sql, nodes, Pending(wish, 60)).starts[0]) == {"t0", "t1"}
    # A node that reports its topology makes it count: nodes that report none form one block per
    # domain.
    plan = started(sql, [*nodes, h100("h0", "x")], Pending(wish, 60))
    assert (plan.starts, plan.heads) == ({}, {0: None})
