"""The steps of a plan, one by one, and the example of sql/functions/scheduler/README.md."""

from __future__ import annotations

from datetime import timedelta

from tests.sql.scheduler.plan.world import (
    NOW,
    Held,
    Node,
    Pending,
    Shape,
    World,
    add_functions,
    build,
)
from tests.support.harness.database import Sql

HALF_HOUR_S, HOUR_S = 1800, 3600
ONE_GROUP = {"groups": [1, 1, 1], "masks": [3, 255, 0], "gpus": [2, 8, 0], "cpus": [20, 80, 0],
             "mems": [2, 8, 0], "jobs": [1, 0, 1]}  # fmt: skip
NODES, TOTALS, FIRST_BIT = 3, 7 * 3 + 64, 7 * 3 + 68


def free_lists(sql: Sql, *, everything: bool = False) -> list[int]:
    query = "select odc._free_lists($1, $2, $3, $4, $5, $6, array[8], array[80], 8, $7)"
    return sql.value(query, *ONE_GROUP.values(), everything)


def listed(free: list[int], level: int) -> list[int]:
    """The nodes of a list, from the first to the last."""
    found, node = [], free[7 * NODES + level]
    while node:
        found.append(node)
        node = free[5 * NODES + node - 1]
    assert bool(found) == bool(free[FIRST_BIT + level])
    return found


def test_nodes_are_in_the_list_of_their_free_gpus(sql: Sql) -> None:
    free = free_lists(sql)
    assert [listed(free, level) for level in (0, 2, 8)] == [[], [1], [2]]
    assert free[TOTALS : TOTALS + 4] == [1, 1, 10, 100]


def test_full_nodes_are_listed_for_jobs_without_gpus(sql: Sql) -> None:
    assert listed(free_lists(sql, everything=True), 0) == [3]


def test_a_started_job_moves_its_node_to_the_front_of_its_new_list(sql: Sql) -> None:
    free = free_lists(sql)
    query = "select odc._allocate_nodes('{}', $1, 3, '{2}', 6, 60, 6, false, 7, 1, 3600)"
    allocs = sql.value(query, free)
    assert allocs == [2, 0b111111, 6, 60, 6, 1, 7, 1, 3600]
    take = "select odc._take_nodes($1, $2, 0, '{1,1,1}', '{8}', '{80}', false)"
    free = sql.value(take, free, allocs)
    assert [listed(free, level) for level in (2, 8)] == [[2, 1], []]
    assert [free[at] for at in (1, 4, 7, 10, 13)] == [0b11000000, 2, 20, 2, 1]
    assert free[TOTALS : TOTALS + 4] == [0, 0, 4, 40]


def test_the_pin_of_a_protected_job_moves_to_a_spare_node_once(sql: Sql) -> None:
    spare, pinned = 4, 13
    heads = [8, 80, 8, spare, 22, spare, 60, 90, 1, 1]
    points = sql.value(
        "select odc._pin_nodes('{0,0,0}', $1, '{3,1}', '{8,8}', '{80,80}', '{8,8}', "
        "'{1,1,1}', '{8}', '{80}', '{8}')",
        heads,
    )
    query = (
        "select (b.f).blocked_at, (b.f).points, (b.f).protected from "
        "(select odc._fits_beside_points($1, $2, null, 1, 2, 20, 2, false, $3, null, null, null, "
        "'{1,1,1}', '{8}', '{80}', '{8}') as f) as b"
    )
    # A job that ends before the point does not need the pin to move.
    before = sql.row(query, points, heads, 50)
    assert before["points"] is None
    moved = sql.row(query, points, heads, 100)
    assert moved["blocked_at"] == 8_000_000_000_000_000_000
    assert [moved["points"][at + 7] for at in (spare, pinned)] == [1, 0]
    assert [moved["points"][at + 4] for at in (spare, pinned)] == [0, 8]
    taken = sql.row(
        query.replace("null, null, '{1,1,1}'", "'{3}', null, '{1,1,1}'"), points, heads, 100
    )
    assert taken["blocked_at"] == 60


def test_the_next_candidate_is_the_first_of_all_runs_whose_class_is_open(sql: Sql) -> None:
    query = (
        "select odc._next_candidate($1, 3, '{0,0,0,0}', '{9,7,5,8}', $2, '{1,2,3,4}', "
        "'{1,2,1,3}', false, '{1,1,1}', '{60,60,60}', $3, '{f,f,f}', '{100}', '{f}', '{f,f,f}')"
    )
    times = [NOW] * 4
    queue, order = [0, 3, 4, 4], []
    while queue := sql.value(query, queue, times, [None] * 3):
        order.append(queue[0])
    assert order == [1, 4, 2, 3]
    assert sql.value(query, [0, 3, 4, 4], times, ["limit", None, "limit"]) == [2, 3]


def test_a_limit_that_is_used_up_or_reserved_is_found_and_named(sql: Sql) -> None:
    left = sql.value(
        "select odc._use_limits('{10,1}', '{t,f}', '{1,2}', '{4,1}', '{2,0}', 1, 2, 2)"
    )
    assert left == [2, 1]
    now = (
        "select lacking, tight, unread, holder "
        "from odc._limits_now($1, $2, '{1,2}', '{4,1}', '{2,0}', 1, 2, $3, 1, 1, true, 1)"
    )
    spans = [0, 0, 1, 0, 1, 0, 0, 1, 0, 1, 0]
    assert sql.row(now, left, spans, 60) == {
        "lacking": [1], "tight": [1], "unread": None, "holder": None,
    }  # fmt: skip
    assert sql.row(now, [4, 1], spans, 60)["lacking"] == []
    # Job 7 needs 3 of the first from 50 to 90: then only 1 is left for jobs that run until then.
    reserve = (
        "select odc._reserve_limits($1, '{4,1}', '{1}', '{1}', '{3}', '{0}', '{t,t}', 1, 1, 7, 50, "
        "90, '{}', '{}', '{}', '{}', '{}')"
    )
    spans = sql.value(reserve, spans)
    assert spans == [1, 1, 1, 12, 1, 0, 0, 1, 0, 1, 0, 0, 50, 90, 3, 1, 7]
    assert sql.row(now, [4, 1], spans, 60) == {
        "lacking": [1], "tight": [1], "unread": None, "holder": 7,
    }  # fmt: skip
    assert sql.row(now, [4, 1], spans, 50)["lacking"] == []


def test_windows_are_the_times_in_which_a_limit_is_free_long_enough(sql: Sql) -> None:
    """2 are left, 2 more from 100 on; another job has reserved 3 from 200 to 300."""
    query = (
        "select odc._limit_windows('{1}', '{2}', '{0,0,1,7,1,2,0,200,300,3,1,7}', '{1}', $1, "
        "'{0}', 1, 1, $2, '{100,2}', '{}', '{}', '{}', '{}')"
    )
    forever = 9_000_000_000_000_000_000
    assert sql.value(query, [1], 500) == [0, forever]
    assert sql.value(query, [2], 50) == [0, 150, 300, forever]
    assert sql.value(query, [3], 50) == [100, 150, 300, forever]
    assert sql.value(query, [3], 101) == [300, forever]
    assert sql.value(query, [5], 50) == []


def test_the_example_of_the_readme(sql: Sql) -> None:
    held = [("n1", 6, HOUR_S), ("n2", 8, HOUR_S), ("n3", 8, HALF_HOUR_S), ("n4", 8, 4 * HOUR_S)]
    world = World(
        nodes=[Node(f"n{at}", "a100", 8, 80, 80) for at in range(1, 5)],
        held=[Held(name, gpus, gpus, gpus, ends_s) for name, gpus, ends_s in held],
        queue=[
            Pending(Shape(nodes=2, gpus=8, cpus=8, mem=8), 2 * HOUR_S),
            Pending(Shape(nodes=1, gpus=2, cpus=2, mem=2), 4 * HOUR_S),
        ],
    )
    add_functions(sql)
    gang, single = build(sql, world)
    plan = sql.row("select * from odc.decide($1)", NOW)
    names = {row["id"]: row["name"] for row in sql.rows("select id, name from odc.node")}
    assert plan["start_jobs"] == [single]
    assert [names[node] for node in plan["alloc_nodes"]] == ["n1"]
    assert plan["head_jobs"] == [gang]
    assert plan["head_ats"] == [NOW + timedelta(hours=1)]
    assert [names[int(node)] for node in plan["head_nodes"][0].split(",")] == ["n3", "n2"]
