"""Quarantine of nodes where jobs keep failing; one user or one script never causes it."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odcd.records.job import Identity
from tests.support.builders.jobs import ROOT, Queue
from tests.support.harness.database import Sql

USERS = [Identity(user=f"u{n}", uid=2000 + n, gid=100, operator=False) for n in range(4)]
SUSPECT = {"failed": ("exited", 1), "lost": ("lost", None), "launch": ("start_failed", None)}


class Cluster(Queue):
    def __init__(self, sql: Sql, count: int = 4, gpu_type: str = "h100") -> None:
        super().__init__(sql)
        sql.execute("update odc.partition set policy = 'fifo'")
        self.names = [f"n{number}" for number in range(1, count + 1)]
        self.gpu_type = gpu_type
        self.register()

    def register(self, **reports: dict[str, Any]) -> None:
        body = [
            {"name": name, "gpu_type": self.gpu_type, "gpus": 8, "cpus": 64, "mem_mib": 64_000}
            | reports.get(name, {})
            for name in self.names
        ]
        self.sql.execute(
            "select odc.register_nodes(0, $1::jsonb, true, $2)", json.dumps(body), self.now
        )

    def on(self, name: str, user: int = 0, script: str = "a", requeue: bool = False) -> int:
        """A job that runs there."""
        job = self.submit(
            USERS[user], gpus=1, node_list=[name], script=f"#!/bin/sh\n{script}\n", requeue=requeue
        )
        assert self.start() == [job]
        return job

    def ends(self, job: int, how: str = "well", rank: int = 0, *, suspect: bool = True) -> None:
        kind, code = SUSPECT.get(how, ("exited", 0))
        attempt = self.running(job)["attempt"]
        self.sql.rows(
            "select * from odc.record_facts(0, array[$1]::bigint[], array[$2]::integer[], "
            "array[$3]::integer[], array[$4], array[$5]::timestamptz[], array[$6]::integer[], "
            "'{null}', '{null}', '{null}', $5, array[$7]::boolean[])",
            job, attempt, rank, kind, self.now, code, suspect and how in SUSPECT,
        )  # fmt: skip

    def run(self, name: str, how: str = "well", user: int = 0, script: str = "a") -> None:
        self.move(1)
        self.ends(self.on(name, user, script), how)

    def peers_do_well(self, times: int = 2) -> None:
        for name in self.names[1:]:
            for _ in range(times):
                self.run(name)

    def judge(self, *, on: bool = True, canaries: bool = True) -> None:
        self.sql.value("select odc.sweep(0, $1, true, null, $2, $3)", self.now, on, canaries)
        assert self.contradictions() == []

    def event_kinds(self) -> list[str]:
        return self.sql.values(
            "select kind from odc.event where kind like any "
            "('{node_quar%,node_susp%,canary%,node_ret%}') order by id"
        )

    def quarantined(self) -> list[str]:
        return self.sql.values(
            "select n.name from odc.node as n join odc.node_quarantine as q on q.node_id = n.id "
            "where q.drained order by 1"
        )

    def node(self, name: str = "n1") -> tuple[str, str | None, str | None]:
        row = self.sql.row(
            "select state::text, reason, reason_by from odc.node where name = $1", name
        )
        return row["state"], row["reason"], row["reason_by"]

    def resume(self, *names: str, state: str = "UP") -> None:
        actor = json.dumps({"user": ROOT.user, "uid": 0, "operator": True})
        self.sql.execute(
            "select odc.set_node_state($1::jsonb, $2, $3, 'tests', $4)",
            actor, list(names), state, self.now,
        )  # fmt: skip

    def canaries(self) -> list[int]:
        return self.sql.values("select number from odc.take_canaries(0, $1)", self.now)

    def canary_ends(self, number: int, passed: bool, detail: str = "said") -> None:
        self.sql.execute(
            "select odc.end_canary(0, $1, $2, $3, $4)", number, passed, detail, self.now
        )


@pytest.fixture
def cluster(sql: Sql) -> Cluster:
    return Cluster(sql)


def eat(cluster: Cluster, name: str = "n1", how: str = "failed", times: int = 3) -> None:
    for number in range(times):
        cluster.run(name, how, user=number % 2, script=f"{name}-{number}")


def test_a_node_where_jobs_keep_failing_is_quarantined_with_a_reason(cluster: Cluster) -> None:
    cluster.peers_do_well()
    cluster.run("n1")
    stays = cluster.on("n1")
    eat(cluster)
    cluster.judge()
    assert cluster.node() == (
        "DRAIN",
        "quarantined: 3 of its last 4 jobs failed within 120 s (3 scripts of 2 users); on "
        "other h100 nodes, 0 of 6 did",
        "odcd",
    )
    assert cluster.event_kinds() == ["node_quarantined"]
    assert cluster.running(stays)["intent"] is None
    waits = cluster.submit(gpus=1, node_list=["n1"])
    assert cluster.start() == []
    why = json.loads(cluster.sql.value("select odc.explain_job($1, $2)", waits, cluster.now))
    assert any("3 of its last 4 jobs failed" in cause["text"] for cause in why["why"])


@pytest.mark.parametrize(
    ("how", "words"), [("lost", "were lost"), ("launch", "could not be started")]
)
def test_lost_and_unlaunchable_jobs_count_against_a_node(
    cluster: Cluster, how: str, words: str
) -> None:
    cluster.peers_do_well()
    eat(cluster, how=how)
    cluster.judge()
    assert f"3 of its last 3 jobs {words} (3 scripts" in str(cluster.node()[1])


def test_jobs_of_a_vanished_node_count_against_it(cluster: Cluster) -> None:
    cluster.peers_do_well()
    jobs = [cluster.on("n1", user=n % 2, script=f"s{n}") for n in range(3)]
    gang = cluster.submit(node_count=2, gpus_per_node=1, node_list=["n1", "n2"])
    assert cluster.start() == [gang]
    cluster.register(n1={"state": "DOWN", "reason": "not ready"})
    cluster.move(121)
    cluster.sql.value("select odc.sweep(0, $1, false, '120 s', true)", cluster.now)
    for job in jobs:
        cluster.ends(job, "lost", suspect=False)
    for rank in (0, 1):
        cluster.ends(gang, "lost", rank, suspect=False)
    cluster.register()
    cluster.judge()
    assert "4 of its last 4 jobs were lost" in str(cluster.node()[1])
    assert cluster.sql.values(
        "select distinct n.name from odc.node_strike as s join odc.node as n on n.id = s.node_id"
    ) == ["n1"]


def test_intended_ends_count_against_no_node(cluster: Cluster) -> None:
    cluster.peers_do_well()
    for number in range(4):
        job = cluster.on("n1", user=number % 2, script=f"s{number}")
        cluster.cancel(job, who=ROOT)
        cluster.ends(job, "failed")
    assert cluster.sql.values("select cause from odc.node_strike") == []


def test_of_a_gang_only_the_node_of_the_failed_member_counts(cluster: Cluster) -> None:
    gang = cluster.submit(node_count=2, gpus_per_node=8, node_list=["n1", "n2"])
    assert cluster.start() == [gang]
    cluster.ends(gang, "launch", rank=1)
    cluster.ends(gang, "lost", rank=0)
    assert cluster.sql.rows(
        "select n.name, s.cause, s.nths from odc.node_strike as s "
        "join odc.node as n on n.id = s.node_id"
    ) == [{"name": "n2", "cause": "launch", "nths": [1]}]


@pytest.mark.parametrize(
    ("users", "scripts"),
    [(1, 6), (6, 1)],
    ids=["one user's scripts", "one script of all users"],
)
def test_failures_of_one_user_or_one_script_never_quarantine_a_node(
    cluster: Cluster, users: int, scripts: int
) -> None:
    cluster.peers_do_well(8)
    for number in range(24):
        cluster.run("n1", "failed", user=number % users % 4, script=f"s{number % scripts}")
    cluster.judge()
    assert cluster.quarantined() == []


def test_scripts_that_also_fail_elsewhere_are_no_evidence(cluster: Cluster) -> None:
    cluster.peers_do_well()
    eat(cluster)
    for number in range(3):
        cluster.run("n2", "failed", user=number % 2, script=f"n1-{number}")
    cluster.peers_do_well(8)
    cluster.judge()
    assert cluster.event_kinds() == []


def test_repeats_count_once_on_either_side(cluster: Cluster) -> None:
    cluster.peers_do_well()
    for _ in range(9):
        cluster.run("n1", "failed", user=1, script="array")
    for _ in range(5):
        cluster.run("n1")
    eat(cluster, times=2)
    cluster.judge()
    assert cluster.quarantined() == [], "3 of 8, though 11 of 16 failed"
    cluster.run("n1", "failed", user=2, script="fourth")
    cluster.run("n1", "failed", user=2, script="fifth")
    cluster.judge()
    assert "5 of its last 10 jobs" in str(cluster.node()[1])


def test_failures_across_the_whole_cluster_quarantine_no_node(cluster: Cluster) -> None:
    for name in cluster.names:
        eat(cluster, name)
    cluster.judge()
    assert cluster.event_kinds() == []


def test_a_long_healthy_past_does_not_hide_what_happens_now(cluster: Cluster) -> None:
    cluster.peers_do_well()
    cluster.sql.execute("update odc.node_free set ended = 5000")
    eat(cluster, times=9)
    cluster.judge()
    assert cluster.quarantined() == [], "9 of 20"
    cluster.run("n1", "failed", user=3, script="tenth")
    cluster.judge()
    assert cluster.quarantined() == ["n1"]


def test_old_failures_are_forgotten(cluster: Cluster) -> None:
    cluster.peers_do_well()
    eat(cluster)
    cluster.move(3600)
    cluster.judge()
    assert cluster.event_kinds() == []
    cluster.move(86_400)
    cluster.judge()
    assert cluster.sql.values("select node_id from odc.node_strike") == []


@pytest.mark.parametrize(("count", "most"), [(10, 1), (20, 2), (25, 2)])
def test_beyond_the_cap_a_node_is_only_suspected(sql: Sql, count: int, most: int) -> None:
    cluster = Cluster(sql, count)
    cluster.sql.execute("update odc.node_free set ended = 60")
    for name in cluster.names[:3]:
        eat(cluster, name, times=20)
    cluster.sql.execute("update odc.node_free set ended = ended + 4 where node_id = "
                        "(select id from odc.node where name = 'n1')")  # fmt: skip
    cluster.judge()
    cluster.judge()
    bad = ["n2", "n3", "n1"]
    assert cluster.quarantined() == sorted(bad[:most])
    assert cluster.event_kinds() == ["node_quarantined"] * most + ["node_suspected"] * (3 - most)
    cluster.resume(*bad[:most])
    cluster.judge()
    assert cluster.quarantined() == sorted(bad[most : 2 * most]), "there is room now"


def test_a_node_is_not_measured_by_those_that_are_quarantined(sql: Sql) -> None:
    cluster = Cluster(sql, 20)
    cluster.run("n3")
    cluster.run("n4")
    eat(cluster, "n1")
    cluster.judge()
    eat(cluster, "n2")
    cluster.judge()
    assert cluster.quarantined() == ["n1", "n2"]
    assert str(cluster.node("n2")[1]).endswith("; on other h100 nodes, 0 of 2 did")


def test_the_inventory_does_not_end_a_quarantine_but_may_take_the_node_down(
    cluster: Cluster,
) -> None:
    cluster.peers_do_well()
    eat(cluster)
    cluster.judge()
    kept = cluster.node()
    cluster.register()
    assert cluster.node() == kept
    job = cluster.submit(gpus=1, node_list=["n1"])
    for report in (
        {"state": "DOWN", "reason": "not ready"},
        {"state": "DRAIN", "reason": "cordoned"},
    ):
        cluster.register(n1=report)
        assert cluster.node() == (report["state"], report["reason"], None)
        cluster.move(3600)
        assert cluster.canaries() == [], "not while it is away"
    cluster.register()
    assert cluster.node() == kept
    cluster.register(n1={})
    cluster.judge()
    assert cluster.start() == []
    assert cluster.state(job) == "PENDING"
    assert cluster.contradictions() == []


def test_a_canary_that_succeeds_returns_the_node_and_clears_its_failures(cluster: Cluster) -> None:
    cluster.peers_do_well()
    eat(cluster)
    cluster.judge()
    cluster.move(599)
    assert cluster.canaries() == []
    cluster.move(1)
    [number] = cluster.canaries()
    assert cluster.canaries() == [number], "another leader gets the same"
    cluster.canary_ends(number, True)
    cluster.judge()
    assert cluster.node() == ("UP", None, None)
    assert cluster.event_kinds() == ["node_quarantined", "node_returned"]
    assert cluster.canaries() == []
    cluster.canary_ends(number, False)
    assert cluster.node() == ("UP", None, None), "no one waits for that canary now"
    eat(cluster, times=2)
    cluster.judge()
    assert cluster.quarantined() == []


def test_a_canary_that_fails_is_tried_again_later_each_time(cluster: Cluster) -> None:
    cluster.peers_do_well()
    eat(cluster)
    cluster.judge()
    waited: list[timedelta] = []
    for _ in range(7):
        since = cluster.now
        while not (numbers := cluster.canaries()):
            cluster.move(300)
        waited.append(cluster.now - since)
        cluster.canary_ends(numbers[0], False, "exit code 6:\n No devices were found")
    assert [int(each.total_seconds() / 60) for each in waited] == [10, 20, 40, 80, 160, 240, 240]
    state, reason, _ = cluster.node()
    assert state == "DRAIN"
    assert str(reason).endswith("; its canary failed 7 times: exit code 6: No devices were found")
    assert cluster.event_kinds() == ["node_quarantined", *["canary_failed"] * 7]


def test_a_canary_waits_for_a_gpu_that_no_job_has(cluster: Cluster) -> None:
    cluster.peers_do_well()
    eat(cluster)
    long = cluster.submit(gpus=8, node_list=["n1"])
    assert cluster.start() == [long]
    cluster.judge()
    cluster.move(3000)
    assert cluster.canaries() == []
    cluster.end(long)
    assert len(cluster.canaries()) == 1


@pytest.mark.parametrize("state", ["UP", "DRAIN"])
def test_an_operator_ends_a_quarantine(cluster: Cluster, state: str) -> None:
    cluster.peers_do_well()
    eat(cluster)
    cluster.judge()
    cluster.move(600)
    [number] = cluster.canaries()
    cluster.resume("n1", state=state)
    assert cluster.canaries() == []
    cluster.canary_ends(number, True)
    cluster.judge()
    cluster.register()
    assert cluster.node()[0] == state
    assert cluster.quarantined() == []


def test_quarantined_nodes_return_when_quarantine_is_switched_off(cluster: Cluster) -> None:
    cluster.peers_do_well()
    eat(cluster)
    cluster.judge(on=False)
    assert cluster.event_kinds() == []
    cluster.judge()
    cluster.judge(on=False)
    assert (cluster.node()[0], cluster.event_kinds()[-1]) == ("UP", "node_returned")


def test_without_canaries_a_quarantined_node_waits_for_an_operator(cluster: Cluster) -> None:
    cluster.peers_do_well()
    eat(cluster)
    cluster.judge(canaries=False)
    assert "without ODC_IMAGE no canary can test it, so an operator" in str(cluster.node()[1])


@pytest.mark.long
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.lists(
        st.one_of(
            st.tuples(
                st.just("run"), st.integers(0, 5), st.sampled_from(("well", *SUSPECT)),
                st.integers(0, 2), st.integers(0, 4),
            ),
            st.tuples(
                st.just("bad"), st.integers(0, 5), st.sampled_from(tuple(SUSPECT)),
                st.integers(0, 2), st.integers(0, 4),
            ),
            st.tuples(st.sampled_from(("away", "back", "resume", "canary", "wait")),
                      st.integers(0, 5), st.just(""), st.integers(0, 1), st.just(0)),
        ),
        max_size=24,
    ),
    st.sampled_from(("all", "one user", "one script")),
)  # fmt: skip
def test_the_verdict_does_not_depend_on_the_order_of_ends(
    sql: Sql, steps: list[tuple[str, int, str, int, int]], who: str
) -> None:
    """Never more than the cap; never by one user or one script; the books balance."""
    with sql.trial():
        cluster = Cluster(sql, 6)
        down: set[str] = set()
        for verb, at, how, user, script in steps:
            name = cluster.names[at]
            cluster.move(7)
            if verb in ("run", "bad"):
                state = cluster.node(name)[0]
                for turn in range(3 if verb == "bad" else 1):
                    if state == "UP":
                        cluster.run(
                            name, how,
                            0 if who == "one user" else (user + turn) % 3,
                            "s" if who == "one script" else f"{script + turn}",
                        )  # fmt: skip
            elif verb in ("away", "back"):
                (down.add if verb == "away" else down.discard)(name)
                cluster.register(**{n: {"state": "DOWN", "reason": "away"} for n in down})
            elif verb == "resume" and cluster.node(name)[0] != "DOWN":
                cluster.resume(name)
            elif verb == "wait":
                cluster.move(600)
            elif verb == "canary":
                for number in cluster.canaries():
                    cluster.canary_ends(number, bool(user))
            cluster.judge()
            held = cluster.quarantined()
            assert len(held) <= 1
            if who != "all":
                assert cluster.event_kinds() == []
