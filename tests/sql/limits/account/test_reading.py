"""Priorities and shares are shown as the scheduler computes them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.sql.limits.account.books import a_member, a_qos, a_user, an_account, has_used
from tests.support.builders.jobs import ALICE, BOB, Queue


def priorities(queue: Queue, limit: int = 100, **filters: Any) -> dict[str, Any]:
    return json.loads(
        queue.sql.value(
            "select odc.list_priorities($1, $2, $3, $4, $5, $6)",
            filters.get("ids"), filters.get("users"), filters.get("accounts"),
            filters.get("partitions"), limit, queue.now,
        )
    )  # fmt: skip


def test_every_factor_is_shown_and_they_add_up(queue: Queue) -> None:
    a_qos(queue.sql, "high", priority=10)
    job = queue.submit(gpus=8, gpu_type="h100", qos="high", nice=20)
    other = queue.submit(BOB, gpus=1)
    queue.move(302_400)  # half of max_age
    answer = priorities(queue)
    assert answer["weights"] == {
        "age": 1000,
        "size": 100,
        "fairshare": 10000,
        "qos": 10000,
        "partition": 1000,
    }
    first, second = answer["jobs"]
    assert (first["id"], second["id"]) == (job, other)
    # One of two nodes, and half of the GPUs.
    assert first["factors"] == {
        "age": 0.5,
        "size": 0.5,
        "fairshare": 1.0,
        "qos": 1.0,
        "partition": 1.0,
    }
    assert first["points"] == {
        "age": 500,
        "size": 50,
        "fairshare": 10000,
        "qos": 10000,
        "partition": 1000,
    }
    assert first["priority"] == sum(first["points"].values()) - 20
    assert (first["user"], first["qos"], first["nice"]) == ("alice", "high", 20)


def test_the_order_shown_is_the_order_of_a_multifactor_pass(queue: Queue) -> None:
    queue.sql.execute("update odc.partition set policy = 'multifactor'")
    has_used(queue.sql, 1, ALICE, 10**9)
    has_used(queue.sql, 1, BOB, 10**6)
    hers = [queue.submit(gpus=8, gpu_type="h100", nice=n) for n in (5, 0)]
    his = queue.submit(BOB, gpus=8, gpu_type="h100")
    shown = [j["id"] for j in priorities(queue)["jobs"]]
    assert shown == [his, hers[1], hers[0]]
    assert queue.start() == sorted(shown[:2])
    assert [j["id"] for j in priorities(queue)["jobs"]] == shown[2:]


def test_priorities_are_filtered_and_limited_in_number(queue: Queue) -> None:
    an_account(queue.sql, "lab")
    mine = [queue.submit(gpus=1, account="lab") for _ in range(3)]
    theirs = queue.submit(BOB, gpus=1)
    assert {j["id"] for j in priorities(queue, users=["alice"])["jobs"]} == set(mine)
    assert [j["id"] for j in priorities(queue, accounts=["default"])["jobs"]] == [theirs]
    assert [j["id"] for j in priorities(queue, ids=[mine[1]])["jobs"]] == [mine[1]]
    assert priorities(queue, partitions=["none"]) == priorities(queue, ids=[]) | {"jobs": []}
    cut = priorities(queue, limit=2)
    assert (len(cut["jobs"]), cut["more"]) == (2, True)


@pytest.mark.parametrize(
    ("wait_s", "nice", "score"),
    [(0, 0, 0), (-5, 0, 0), (1, 0, 1000 * 1_000_000 // 604_800), (10**9, 0, 10**9),
     (0, 3, -3_000_000), (0, -2147483645, 2_147_483_645_000_000)],
)  # fmt: skip
def test_the_score_counts_every_second_up_to_the_oldest(
    queue: Queue, wait_s: int, nice: int, score: int
) -> None:
    assert score == queue.sql.value(
        "select odc._multifactor_score($1, 0, 0, 0, 0, $2, 1000, 1, 1, 1, 1, 604800)", wait_s, nice
    )


def test_shares_are_shown_as_a_tree(queue: Queue) -> None:
    sql = queue.sql
    top = an_account(sql, "phys", shares=3)
    lab = an_account(sql, "lab", parent=top)
    an_account(sql, "chem", shares=0)
    a_member(sql, lab, ALICE, shares=3)
    a_member(sql, top, BOB)
    has_used(sql, lab, ALICE, 6_000_000)
    has_used(sql, 1, a_user(1), 2_000_000)
    answer = json.loads(sql.value("select odc.list_shares($1)", queue.now))
    assert answer["used_s"] == 8000
    keys = (
        "account",
        "user",
        "depth",
        "raw_shares",
        "norm_shares",
        "used_s",
        "effective_usage",
        "level_fs",
        "fairshare",
    )
    assert [tuple(row[k] for k in keys) for row in answer["shares"]] == [
        ("chem", None, 0, 0, 0.0, 0, 0.0, None, None),
        ("default", None, 0, 1, 0.25, 2000, 0.25, 1.0, None),
        ("default", "u1", 1, 1, 1.0, 2000, 1.0, 1.0, 0.666666),
        ("phys", None, 0, 3, 0.75, 6000, 0.75, 1.0, None),
        ("phys", "bob", 1, 1, 0.5, 0, 0.0, None, 1.0),
        ("lab", None, 1, 1, 0.5, 6000, 1.0, 0.5, None),
        ("lab", "alice", 2, 3, 1.0, 6000, 1.0, 1.0, 0.333333),
    ]
