"""Fair Tree, and the decay of used time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sql.limits.account.books import a_member, a_user, an_account, fair_share, has_used
from tests.support.builders.jobs import ALICE, BOB, NOW, Queue
from tests.support.harness.database import Sql, TestServer

WEEK = timedelta(weeks=1)


def test_users_of_accounts_below_their_share_go_before_users_of_accounts_above(
    sql: Sql,
) -> None:
    """Two departments with equal shares. chem has used 10, phys 30; so heavy users of chem come
    before idle ones of phys, and within each the lighter first."""
    chem, phys = an_account(sql, "chem"), an_account(sql, "phys")
    ana, ben, cem, dia = (a_user(n) for n in range(4))
    has_used(sql, chem, ana, 9_000)
    has_used(sql, chem, ben, 1_000)
    has_used(sql, phys, cem, 30_000)
    has_used(sql, phys, dia, 0)
    assert fair_share(sql) == {
        (chem, ben.uid): 1_000_000,
        (chem, ana.uid): 750_000,
        (phys, dia.uid): 500_000,
        (phys, cem.uid): 250_000,
    }


def test_shares_weigh_usage(sql: Sql) -> None:
    lab = an_account(sql, "lab")
    ana, ben = a_user(0), a_user(1)
    a_member(sql, lab, ana, shares=10)
    a_member(sql, lab, ben, shares=1)
    has_used(sql, lab, ana, 9_000)
    has_used(sql, lab, ben, 1_000)
    assert fair_share(sql) == {(lab, ana.uid): 1_000_000, (lab, ben.uid): 500_000}


def test_users_with_equal_usage_have_equal_factors(sql: Sql) -> None:
    lab = an_account(sql, "lab")
    for n, used in enumerate((500, 500, 0, 700)):
        has_used(sql, lab, a_user(n), used)
    assert sorted(fair_share(sql).values()) == [250_000, 750_000, 750_000, 1_000_000]


def test_a_user_who_has_only_a_pending_job_is_ranked(queue: Queue) -> None:
    queue.submit(gpus=8)
    has_used(queue.sql, 1, BOB, 5_000)
    assert fair_share(queue.sql) == {(1, ALICE.uid): 1_000_000, (1, BOB.uid): 500_000}


def test_running_jobs_count_before_they_end(queue: Queue) -> None:
    job = queue.submit(gpus=8, gpu_type="h100", time_limit_s=7200)
    queue.submit(BOB, gpus=1)
    queue.start()
    queue.move(3600)
    queue.sql.execute("delete from odc.pending")
    used = {
        r["uid"]: r["used_ms"]
        for r in queue.sql.rows("select * from odc._used_time($1)", queue.now)
    }
    assert used == {ALICE.uid: 8 * 3_600_000, BOB.uid: 3_600_000}
    assert queue.state(job) == "CONFIGURING"


def test_used_time_halves_exactly_with_each_half_life(sql: Sql) -> None:
    has_used(sql, 1, ALICE, 1 << 40)
    for halvings in range(41):
        [row] = sql.rows("select used_ms from odc._used_time($1)", NOW + halvings * WEEK)
        assert row["used_ms"] == 1 << (40 - halvings)
    [row] = sql.rows("select used_ms from odc._used_time($1)", NOW + 100 * WEEK)
    assert row["used_ms"] == 0


@given(seconds=st.integers(0, 40 * 604_800))
@settings(max_examples=200)
def test_used_time_decays_by_half_lives(sql_of_module: Sql, seconds: int) -> None:
    left = sql_of_module.value(
        "select odc._decay(1::bigint << 50, h.halvings, h.rest) from odc._half_lives($1, $2) as h",
        NOW, NOW + timedelta(seconds=seconds),
    )  # fmt: skip
    assert left == pytest.approx((1 << 50) * 0.5 ** (seconds / 604_800), rel=2e-9, abs=1)


@pytest.fixture(scope="module")
def sql_of_module(postgres_server: TestServer) -> Iterator[Sql]:
    dsn = postgres_server.clone()
    with Sql(dsn) as sql:
        yield sql
    postgres_server.drop(dsn)


# -- compared with a plain walk of the tree -------------------------------------------------------


@dataclass
class Node:
    """An account with children, or a user without."""

    shares: int
    used: int = 0
    key: tuple[int, int] | None = None
    children: list[Node] = field(default_factory=list["Node"])

    @property
    def total(self) -> int:
        return self.used + sum(child.total for child in self.children)

    @property
    def level_fs(self) -> float:
        if self.total == 0:
            return float("inf")
        return self.shares / self.total


def ranked(siblings: list[Node]) -> list[list[Node]]:
    """Users in order, those that tie together: sort siblings, then descend; the children of
    accounts that tie are siblings of one another."""
    order: list[list[Node]] = []
    siblings = sorted(siblings, key=lambda n: -n.level_fs)
    for _, same in groupby(siblings, key=lambda n: n.level_fs):
        tied = list(same)
        if users := [n for n in tied if n.key]:
            order.append(users)
        if below := [child for n in tied if not n.key for child in n.children]:
            order += ranked(below)
    return order


leaves = st.builds(Node, shares=st.integers(0, 3), used=st.sampled_from([0, 0, 6, 12, 24, 50]))
trees = st.recursive(
    leaves,
    lambda inner: st.builds(
        lambda shares, children: Node(shares=shares, children=children),
        st.integers(0, 3),
        st.lists(inner, min_size=0, max_size=4),
    ),
    max_leaves=14,
)


@given(roots=st.lists(trees, min_size=1, max_size=4))
@settings(max_examples=60, deadline=None)
def test_the_factor_is_the_rank_of_a_walk_through_the_tree(
    sql_of_module: Sql, roots: list[Node]
) -> None:
    sql = sql_of_module
    sql.begin()
    try:
        count = 0

        def write(node: Node, parent: int | None) -> None:
            nonlocal count
            count += 1
            if not node.children and parent is not None:
                who = a_user(count)
                node.key = (parent, who.uid)
                a_member(sql, parent, who, shares=node.shares)
                has_used(sql, parent, who, node.used)
                return
            node.used = 0
            account = an_account(sql, f"a{count}", parent, node.shares)
            for child in node.children:
                write(child, account)

        for root in roots:
            write(root, None)
        order = ranked(roots)
        users = sum(map(len, order))
        expected: dict[tuple[int, int], int] = {}
        before = 0
        for tied in order:
            for node in tied:
                assert node.key
                expected[node.key] = (users - before) * 1_000_000 // users
            before += len(tied)
        assert fair_share(sql) == expected
    finally:
        sql.rollback()
