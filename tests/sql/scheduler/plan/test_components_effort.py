"""How much of a pass a heterogeneous job may take: searches and placements are counted."""

from __future__ import annotations

from typing import Any

import pytest

from odcd.records.job import ComponentSpec
from tests.support.builders.jobs import ALICE, BOB, Queue, a_cluster


def het(queue: Queue, *components: dict[str, Any], **fields: Any) -> int:
    parts = [ComponentSpec(**one) for one in components]
    return queue.submit(launch="first", components=parts, **fields)


def calls_in_pass(queue: Queue, *names: str) -> list[int]:
    """Calls of these functions in a pass, in which no job starts."""
    queue.sql.execute("set local track_functions = 'pl'")
    query = (
        "select coalesce(sum(calls), 0)::integer from pg_stat_xact_user_functions "
        "where schemaname = 'odc' and funcname = $1"
    )
    before = [queue.sql.value(query, name) for name in names]
    assert queue.start() == []
    return [queue.sql.value(query, name) - was for name, was in zip(names, before, strict=True)]


def busy_nodes(queue: Queue, count: int) -> list[str]:
    """Nodes that jobs leave one after another, a minute each."""
    a_cluster(queue.sql, cpu_x86=count)
    names = [f"cpu-x86-{number + 1}" for number in range(count)]
    for number, name in enumerate(names):
        queue.submit(node_list=[name], exclusive=True, time_limit_s=60 * (number + 1))
    assert len(queue.start()) == count
    return names


def wait_s(queue: Queue, job_id: int) -> float | None:
    at = queue.sql.value("select planned_start_at from odc.planned where job_id = $1", job_id)
    return None if at is None else (at - queue.now).total_seconds()


@pytest.fixture
def deep(queue: Queue) -> Queue:
    queue.sql.execute("update odc.policy set plan_depth = 50")
    return queue


def test_a_start_is_found_in_few_questions_if_each_component_waits_for_another_node(
    deep: Queue,
) -> None:
    """Before: all components were asked again from each new moment on, and five such jobs of 128
    components took two minutes in each pass."""
    names = busy_nodes(deep, 40)
    one = het(deep, *[{"exclusive": True, "node_list": [name]} for name in names])
    asked, lists = calls_in_pass(deep, "_find_start", "_allow_lists")
    assert wait_s(deep, one) == pytest.approx(40 * 60, abs=1)
    assert asked <= 256 + 3 * len(names)
    # One is enough to see that the job does not fit, and then each list is read once.
    assert lists <= 1 + len(names)


def test_a_start_is_found_in_few_questions_if_components_ask_for_the_same(deep: Queue) -> None:
    names = busy_nodes(deep, 40)
    one = het(deep, *[{"exclusive": True}] * len(names))
    [asked] = calls_in_pass(deep, "_find_start")
    assert wait_s(deep, one) == pytest.approx(40 * 60, abs=1)
    assert asked <= 256 + 3 * len(names)


@pytest.mark.long
def test_a_pass_asks_no_more_than_its_limit(deep: Queue) -> None:
    """Jobs beyond it get no planned start in this pass, and their reason is true. Of two users,
    because the components of one user in a pass are limited, too."""
    names = busy_nodes(deep, 32)
    parts: list[dict[str, Any]] = [{"exclusive": True, "node_list": [name]} for name in names]
    jobs = [
        het(deep, parts[0] | {"mem_per_node_mib": 1 + n}, *parts[1:], who=ALICE if n < 21 else BOB)
        for n in range(42)
    ]
    assert calls_in_pass(deep, "_find_start")[0] <= 1536
    starts = [wait_s(deep, one) for one in jobs]
    assert (starts[0], starts[-1]) == (pytest.approx(32 * 60, abs=1), None)
    reasons = deep.sql.values(
        "select r.reason from odc.refusal as r join odc.pending as p using (shape_id) "
        "where p.job_id = $1",
        jobs[-1],
    )
    assert reasons == ["Resources"]


def test_a_component_that_fits_nowhere_is_tried_first_and_then_no_other(queue: Queue) -> None:
    """Before: each of four orders placed all components before it."""
    names = busy_nodes(queue, 12)
    queue.end(*queue.sql.values("select job_id from odc.running order by job_id desc limit 11"))
    het(queue, *[{"exclusive": True, "node_list": [name]} for name in reversed(names)])
    assert calls_in_pass(queue, "_allocate_nodes", "_place_in_order") == [11, 2]


def test_orders_that_differ_only_by_equal_components_are_tried_once(queue: Queue) -> None:
    a_cluster(queue.sql, cpu_x86=4)
    queue.submit(exclusive=True)
    assert len(queue.start()) == 1
    het(queue, *[{"cpus_per_task": 16}] * 4)
    assert calls_in_pass(queue, "_allocate_nodes", "_place_in_order") == [3, 1]
