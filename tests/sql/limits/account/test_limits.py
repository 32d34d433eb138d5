"""Limits are enforced in every pass, in any order of jobs; a job over a limit blocks no other
job."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from odcd.records.job import Identity
from tests.sql.limits.account.books import a_limit, a_member, a_qos, an_account, has_used
from tests.support.builders.jobs import ALICE, BOB, Queue, a_cluster
from tests.support.harness.database import Sql
from tests.support.harness.depth import deep


def test_without_limits_a_pass_reads_none(queue: Queue) -> None:
    queue.submit(gpus=1)
    row = queue.sql.row(
        "select * from odc._plan_limits($1, '{1}', '{60}', '{1}', '{1}', '{1}')", queue.now
    )
    assert set(row.values()) == {None}


def test_a_user_at_a_qos_limit_waits_and_others_start(queue: Queue) -> None:
    a_limit(queue.sql, "qos", 1, "user", "gpus", 4)
    mine = [queue.submit(gpus=2, gpu_type="h100") for _ in range(4)]
    theirs = [queue.submit(BOB, gpus=2, gpu_type="h100") for _ in range(2)]
    assert queue.start() == [*mine[:2], *theirs]
    assert queue.start() == []
    queue.end(mine[0])
    assert queue.start() == [mine[2]]


def test_an_accounts_limit_covers_the_accounts_below_it(queue: Queue) -> None:
    top = an_account(queue.sql, "top")
    an_account(queue.sql, "left", top)
    an_account(queue.sql, "right", top)
    a_limit(queue.sql, "account", top, "group", "gpus", 3)
    first = queue.submit(account="left", gpus=2, gpu_type="h100")
    queue.submit(BOB, account="right", gpus=2, gpu_type="h100")
    third = queue.submit(BOB, account="right", gpus=1, gpu_type="h100")
    assert queue.start() == [first, third]


def test_a_users_own_limit_replaces_the_accounts(queue: Queue) -> None:
    lab = an_account(queue.sql, "lab")
    a_limit(queue.sql, "account", lab, "user", "jobs", 1)
    own = a_member(queue.sql, lab, ALICE)
    a_limit(queue.sql, "user", own, "group", "jobs", 2)
    mine = [queue.submit(account="lab", gpus=1) for _ in range(3)]
    theirs = [queue.submit(BOB, account="lab", gpus=1) for _ in range(3)]
    assert queue.start() == [*mine[:2], theirs[0]]


def test_a_limit_of_the_qos_replaces_the_accounts(queue: Queue) -> None:
    lab = an_account(queue.sql, "lab")
    fast = a_qos(queue.sql, "fast")
    a_limit(queue.sql, "account", lab, "user", "jobs", 1)
    a_limit(queue.sql, "qos", fast, "user", "jobs", 3)
    plain = [queue.submit(account="lab", gpus=1) for _ in range(2)]
    quick = [queue.submit(account="lab", qos="fast", gpus=1) for _ in range(4)]
    assert queue.start() == [plain[0], *quick[:3]]


def test_an_exclusive_job_counts_with_the_whole_node(queue: Queue) -> None:
    a_limit(queue.sql, "qos", 1, "user", "gpus", 12)
    jobs = [queue.submit(gpus=1, gpu_type="h100", exclusive=True) for _ in range(2)]
    assert queue.start() == jobs[:1]


def test_gpu_minutes_are_set_aside_at_the_start(queue: Queue) -> None:
    """100 GPU-minutes: after a job that may use 60, a second such job must wait."""
    a_limit(queue.sql, "account", 1, "group", "gpu_minutes", 100)
    jobs = [queue.submit(gpus=2, gpu_type="h100", time_limit_s=1800) for _ in range(3)]
    assert queue.start() == jobs[:1]
    queue.move(60)
    queue.end(jobs[0])  # 2 used, 98 left
    assert queue.start() == [jobs[1]]


def test_gpu_minutes_that_were_used_come_back_as_they_decay(queue: Queue) -> None:
    a_limit(queue.sql, "qos", 1, "group", "gpu_minutes", 100)
    has_used(queue.sql, 1, BOB, 90 * 60_000)
    job = queue.submit(gpus=1, gpu_type="h100", time_limit_s=1800)
    assert queue.start() == []
    queue.move(604_800)
    assert queue.start() == [job]


def test_a_limit_of_a_partition_counts_what_runs_there(queue: Queue) -> None:
    sql = queue.sql
    part = sql.value(
        "insert into odc.partition (name, all_nodes) values ('big', true) returning id"
    )
    sql.execute("select odc._regroup_nodes()")
    a_limit(sql, "partition", part, "account", "nodes", 1)
    elsewhere = queue.submit(gpus=1)
    there = [queue.submit(partitions=["big"], gpus=1, time_limit_s=3600) for _ in range(2)]
    assert queue.start() == [elsewhere, there[0]]


@pytest.mark.parametrize(
    ("scope", "per", "what"),
    [
        ("account", "account", "jobs"), ("user", "account", "jobs"),
        ("partition", "group", "gpu_minutes"),
        ("qos", "user", "gpu_minutes"), ("qos", "job", "jobs"), ("qos", "group", "wall_s"),
        ("node", "group", "jobs"), ("qos", "group", "dollars"),
    ],
)  # fmt: skip
def test_a_meaningless_limit_cannot_be_stored(sql: Sql, scope: str, per: str, what: str) -> None:
    with pytest.raises(Exception, match="check constraint"):
        a_limit(sql, scope, 1, per, what, 1)


def test_every_limit_has_slurms_name(sql: Sql) -> None:
    kept: list[str] = []
    for scope in ("qos", "account", "user", "partition"):
        for per in ("group", "user", "account", "job"):
            for what in ("jobs", "submitted", "gpus", "gpu_minutes", "cpus", "nodes", "wall_s"):
                try:
                    a_limit(sql, scope, 1, per, what, 1)
                except Exception:
                    continue
                name = sql.value("select odc._limit_reason($1, $2, $3)", scope, per, what)
                assert name, (scope, per, what)
                kept.append(name)
    assert len(kept) == 69
    assert {
        "QOSMaxGRESPerUser",
        "AssocGrpGRESMinutes",
        "MaxJobsPerAccount",
        "QOSGrpNodeLimit",
    } < set(kept)


# -- in any order ---------------------------------------------------------------------------------

USERS = (ALICE, BOB)
MEASURE: dict[str, Callable[[dict[str, Any]], int]] = {
    "jobs": lambda r: 1,
    "gpus": lambda r: r["gpus"],
    "cpus": lambda r: r["cpus"],
    "nodes": lambda r: r["nodes"],
}
scopes = st.sampled_from(
    [("qos", "group"), ("qos", "user"), ("qos", "account"), ("account", "group"),
     ("account", "user"), ("partition", "user"), ("partition", "group"), ("user", "group")]
)  # fmt: skip


class Limits(RuleBasedStateMachine):
    """A plain recount of the running jobs never exceeds a limit that was set before."""

    sql: Sql

    def __init__(self) -> None:
        super().__init__()
        self.sql.begin()
        self.queue = Queue(self.sql)
        a_cluster(self.sql, h100=3, cpu_x86=1)
        self.limits: dict[tuple[str, int, str, str], int] = {}
        top = an_account(self.sql, "top")
        self.accounts = {"top": top, "leaf": an_account(self.sql, "leaf", top), "default": 1}
        self.qos = {"normal": 1, "fast": a_qos(self.sql, "fast")}
        self.sql.execute("update odc.qos set deny_on_limit = false")
        self.members = {
            a_member(self.sql, self.accounts["leaf"], ALICE): (self.accounts["leaf"], ALICE)
        }

    def teardown(self) -> None:
        self.sql.rollback()

    @initialize(limits=st.lists(
        st.tuples(scopes, st.integers(0, 9), st.sampled_from([*MEASURE]), st.integers(0, 9)),
        min_size=1, max_size=4))  # fmt: skip
    def limited(self, limits: list[tuple[tuple[str, str], int, str, int]]) -> None:
        for (scope, per), pick, what, value in limits:
            among = {"qos": self.qos.values(), "account": self.accounts.values(),
                     "partition": [1], "user": self.members}[scope]  # fmt: skip
            scope_id = list(among)[pick % len(list(among))]
            a_limit(self.sql, scope, scope_id, per, what, value)
            self.limits[scope, scope_id, per, what] = value

    @rule(
        who=st.sampled_from(USERS), account=st.sampled_from(["top", "leaf", "default"]),
        qos=st.sampled_from(["normal", "fast"]), count=st.integers(1, 3),
        shape=st.sampled_from([{"gpus": 1}, {"gpus": 8}, {"node_count": 2, "gpus_per_node": 4},
                               {"ntasks": 4}, {"gpus": 1, "exclusive": True},
                               {"gpus": 1, "array": "0-4"}]),
    )  # fmt: skip
    def submit(
        self, who: Identity, account: str, qos: str, count: int, shape: dict[str, Any]
    ) -> None:
        for _ in range(count):
            self.queue.submit(who, account=account, qos=qos, time_limit_s=3600, **shape)

    @rule()
    def plan(self) -> None:
        self.queue.start()

    @rule(pick=st.integers(0, 50))
    def end(self, pick: int) -> None:
        running = self.sql.values("select job_id from odc.running order by 1")
        if running:
            self.queue.move(5)
            self.queue.end(running[pick % len(running)])

    @invariant()
    def nothing_is_over_a_limit(self) -> None:
        runs = self.sql.rows(
            "select r.uid, r.account_id, r.qos_id, r.partition_id, count(*) as nodes, "
            "sum(a.gpus) as gpus, sum(a.cpus) as cpus "
            "from odc.running as r join odc.allocation as a using (job_id) group by r.job_id"
        )
        for (scope, scope_id, per, what), value in self.limits.items():
            used: dict[object, int] = {}
            for run in runs:
                if self.holds(scope, scope_id, per, what, run):
                    whom = {"group": 0, "account": run["account_id"]}.get(per, run["uid"])
                    if scope == "account" and per == "user":
                        whom = (run["uid"], run["account_id"])
                    used[whom] = used.get(whom, 0) + MEASURE[what](run)
            assert max(used.values(), default=0) <= value, (scope, scope_id, per, what)

    def holds(self, scope: str, scope_id: int, per: str, what: str, run: dict[str, Any]) -> bool:
        """Whether the limit holds for the running jobs."""
        if scope in ("qos", "partition"):
            return run[f"{scope}_id"] == scope_id
        kind = "user" if scope == "user" else per
        if ("qos", run["qos_id"], kind, what) in self.limits:
            return False
        top, leaf = self.accounts["top"], self.accounts["leaf"]
        if scope == "user":
            return self.members[scope_id] == (run["account_id"], ALICE) and run["uid"] == ALICE.uid
        if scope_id not in (run["account_id"], top if run["account_id"] == leaf else None):
            return False
        if per == "group":
            return True
        own = next(iter(self.members))
        mine = (run["account_id"], run["uid"]) == (leaf, ALICE.uid) and (
            "user",
            own,
            "group",
            what,
        ) in self.limits
        nearer = (
            run["account_id"] == leaf
            and scope_id == top
            and ("account", leaf, "user", what) in self.limits
        )
        return not mine and not nearer


def hold_to_it(database_url: str, **chosen: Any) -> None:
    with Sql(database_url) as sql:
        run_state_machine_as_test(
            type("LimitsHere", (Limits,), {"sql": sql}),
            settings=settings(
                deadline=None, database=None, suppress_health_check=list(HealthCheck), **chosen
            ),
        )


def test_limits_hold_in_any_order(database_url: str) -> None:
    hold_to_it(database_url, max_examples=20, stateful_step_count=12, derandomize=True)


@pytest.mark.long
def test_limits_hold_in_any_order_for_long(database_url: str) -> None:
    hold_to_it(database_url, max_examples=deep(100), stateful_step_count=30)
