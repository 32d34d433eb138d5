"""The promises of elastic groups, in any order of jobs, passes, launches and removals."""

from __future__ import annotations

import os
from datetime import datetime
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

from tests.support.builders.groups import Group, Groups
from tests.support.builders.jobs import Queue
from tests.support.harness.database import Sql
from tests.support.harness.depth import deep

SHAPES: list[dict[str, Any]] = [
    {"gpus": 1, "gpu_type": "h100"},
    {"gpus": 8, "gpu_type": "h100"},
    {"node_count": 2, "gpus_per_node": 8, "gpu_type": "h100"},
    {"node_count": 3, "gpus_per_node": 1, "gpu_type": "h100"},
    {"gpus": 4, "gpu_type": "l4"},
]
names = st.sampled_from(["big", "small", "spot"])


class Elastic(RuleBasedStateMachine):
    sql: Sql

    def __init__(self) -> None:
        super().__init__()
        self.sql.begin()
        self.queue = Queue(self.sql)
        self.grown_at: dict[str, datetime] = {}
        self.cooldowns = {"big": 60.0, "small": 0.0, "spot": 300.0}

    @initialize()
    def begin(self) -> None:
        self.groups = Groups(
            self.queue,
            Group("big", min_nodes=1, max_nodes=4, desired=1, cooldown_s=60, idle_s=300),
            Group("small", gpu_type="l4", max_nodes=2, cooldown_s=0, idle_s=60),
            Group("spot", max_nodes=3, cooldown_s=300, features=("spot",)),
        )

    @rule(shape=st.sampled_from(SHAPES), limit_s=st.sampled_from([60, 3600, 86_400]))
    def submit(self, shape: dict[str, Any], limit_s: int) -> None:
        self.queue.submit(**shape, time_limit_s=limit_s)

    @rule()
    def plan(self) -> None:
        started = self.queue.start()
        on = self.sql.values(
            "select i.instance_id from odc.allocation as a join odc.elastic_instance as i "
            "using (node_id) where a.job_id = any ($1) and i.state <> 'IN'",
            started,
        )
        assert on == []

    @rule(pick=st.integers(0, 9))
    def end(self, pick: int) -> None:
        running = self.sql.values("select job_id from odc.running order by 1")
        if running:
            self.queue.end(running[pick % len(running)])

    @rule(pick=st.integers(0, 9))
    def cancel(self, pick: int) -> None:
        pending = self.sql.values("select job_id from odc.pending order by 1")
        if pending:
            self.queue.cancel(pending[pick % len(pending)])

    @rule(name=names, join=st.booleans())
    def launch(self, name: str, join: bool) -> None:
        self.groups.launch(name, join=join)

    @rule()
    def join(self) -> None:
        for group in self.groups.groups.values():
            for instance in group.instances:
                self.groups.joined.setdefault(instance, f"node-{instance[-4:]}")
        self.groups.see()

    @rule(pick=st.integers(0, 9))
    def instance_is_lost(self, pick: int) -> None:
        """A spot instance is reclaimed, or hardware fails. AWS will replace it."""
        there = [(g, i) for g in self.groups.groups.values() for i in g.instances]
        if there:
            group, instance = there[pick % len(there)]
            group.instances.remove(instance)
            self.groups.joined.pop(instance, None)
            self.groups.see()

    @rule(pick=st.integers(0, 9))
    def a_pod_comes_or_goes(self, pick: int) -> None:
        there = sorted(self.groups.joined)
        if there:
            self.groups.pods ^= {there[pick % len(there)]}
            self.groups.see()

    @rule()
    def grow(self) -> None:
        for name in self.groups.grow():
            before = self.grown_at.get(name)
            took = None if before is None else (self.queue.now - before).total_seconds()
            assert took is None or took >= self.cooldowns[name]
            self.grown_at[name] = self.queue.now

    @rule(fails=st.booleans())
    def ask(self, fails: bool) -> None:
        self.groups.ask(failure="AWS refused" if fails else None)

    @rule()
    def shrink(self) -> None:
        self.groups.shrink()

    @rule(outcome=st.sampled_from(["removed", "refused", "killed"]), pick=st.integers(0, 9))
    def remove(self, outcome: str, pick: int) -> None:
        leaving = self.groups.leaving()
        if not leaving:
            return
        instance = leaving[pick % len(leaving)]["instance_id"]
        if self.groups.confirm(instance) and outcome != "killed":
            used = self.sql.value(
                "select count(*) from odc.allocation as a join odc.elastic_instance as i "
                "using (node_id) where i.instance_id = $1",
                instance,
            )
            assert used == 0, "a node with an allocation is removed"
            assert instance not in self.groups.pods, "a node with a pod is removed"
            self.groups.remove(instance, kept="refused" if outcome == "refused" else None)

    @rule(seconds=st.sampled_from([1, 30, 61, 301, 4000]))
    def time_passes(self, seconds: int) -> None:
        self.queue.move(seconds)
        self.groups.see()

    @invariant()
    def sizes_are_between_minimum_and_maximum(self) -> None:
        for group in self.groups.groups.values() if hasattr(self, "groups") else ():
            assert group.min_nodes <= group.desired <= group.max_nodes
        assert (
            self.sql.rows(
                "select * from odc.elastic_group where wanted not between min_nodes and max_nodes"
            )
            == []
        )

    @invariant()
    def nodes_are_drained_only_while_they_leave(self) -> None:
        assert (
            self.sql.values(
                "select n.name from odc.node as n left join odc.elastic_instance as i "
                "on i.node_id = n.id and i.state <> 'IN' "
                "where n.state = 'DRAIN' and n.reason_by = 'odcd' and i.node_id is null"
            )
            == []
        )

    @invariant()
    def possible_nodes_leave_no_trace(self) -> None:
        assert self.sql.values("select name from odc.node where name like '%/new-%'") == []

    @invariant()
    def books_are_right(self) -> None:
        assert self.queue.contradictions() == []

    def teardown(self) -> None:
        if hasattr(self, "groups"):
            self.settles()
        self.sql.rollback()

    def settles(self) -> None:
        """With nothing to run, every group returns to its minimum, and no node stays drained."""
        self.queue.cancel(*self.sql.values("select job_id from odc.pending"), all=True)
        running = self.sql.values("select job_id from odc.running")
        if running:
            self.queue.end(*running)
        self.groups.pods.clear()
        for _ in range(6):
            for name in self.groups.groups:
                self.groups.launch(name)
            self.join()
            self.queue.move(1200)
            self.groups.round()
        for group in self.groups.groups.values():
            assert len(group.instances) == group.desired == group.min_nodes
        assert self.sql.values("select name from odc.node where state = 'DRAIN'") == []


def hold_to_it(database_url: str, **chosen: Any) -> None:
    with Sql(database_url) as sql:
        run_state_machine_as_test(
            type("ElasticHere", (Elastic,), {"sql": sql}),
            settings=settings(
                deadline=None, database=None, suppress_health_check=list(HealthCheck), **chosen
            ),
        )


def test_elastic_groups_keep_their_promises(database_url: str) -> None:
    hold_to_it(database_url, max_examples=6, stateful_step_count=25, derandomize=True)


@pytest.mark.long
def test_elastic_groups_keep_their_promises_for_long(database_url: str) -> None:
    hold_to_it(
        database_url, max_examples=deep(60), stateful_step_count=40,
        derandomize=not os.environ.get("ODC_HUNT"),
    )  # fmt: skip
