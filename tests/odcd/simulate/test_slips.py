"""Planned starts are kept, on a real workload; if the order changes, each slip has a cause."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from odcd.simulate.cluster import parse_cluster
from odcd.simulate.policy import Policy
from odcd.simulate.replay import read_sources, replay
from odcd.simulate.trace import replayable
from odcd.simulate.workloads import read_trace
from tests.support.harness.database import Sql, TestServer
from tests.support.harness.depth import deep

pytestmark = pytest.mark.long

CAUSES = "select detail ->> 'cause' from odc.event where kind = 'slipped'"
PLANS = "select count(*) from odc.event where kind = 'started'"


def slips(server: TestServer, policy: Policy, jobs: int) -> Counter[str]:
    """The causes of all slips in a replay of the sample's first jobs, on a cluster too small."""
    machine = parse_cluster("9x8")
    trace = read_trace("philly-sample")
    dsn = server.clone()
    try:
        asyncio.run(
            replay(
                dsn,
                sources=read_sources(),
                workload=replayable("sample", trace.jobs, machine).first(jobs),
                cluster=machine,
                policy=policy,
                estimates="user",
                predict=False,
                progress=lambda done, total: None,
            )
        )
        with Sql(dsn) as sql:
            assert sql.value(PLANS) == jobs
            return Counter(sql.values(CAUSES))
    finally:
        server.drop(dsn)


@pytest.mark.parametrize("depth", [1, 1000])
def test_first_come_first_served_keeps_every_planned_start(
    postgres_server: TestServer, depth: int
) -> None:
    assert slips(postgres_server, Policy(name="fifo", plan_depth=depth), 250) == {}


@pytest.mark.parametrize("name", ["odc", "wfp3"])
def test_a_slip_names_the_cause_under_policies_that_reorder(
    postgres_server: TestServer, name: str
) -> None:
    assert set(slips(postgres_server, Policy(name=name), 250)) <= {"overtaken", "order"}


@pytest.mark.long
@pytest.mark.parametrize("depth", [1, 1000])
def test_many_days_keep_every_planned_start(postgres_server: TestServer, depth: int) -> None:
    assert slips(postgres_server, Policy(name="fifo", plan_depth=depth), deep(300)) == {}
