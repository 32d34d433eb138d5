"""Histories made by the daemon's own loops over PostgreSQL, read from there and replayed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

import pytest

from odcd.errors import BadRequest, OdcError
from odcd.simulate.policy import Policy
from odcd.simulate.site.anonymous import anonymised
from odcd.simulate.site.compare import comparison, matched
from odcd.simulate.site.reading import read_site
from odcd.simulate.site.records import Site
from odcd.simulate.site.replay import read_sources, replay_site
from odcd.simulate.site.scenario import Scenario, applied
from odcd.simulate.site.starts import Done
from tests.odcd.simulate.site.days import quiet_days
from tests.sim.simulation import START
from tests.support.harness.database import Sql, TestServer


@dataclass(frozen=True)
class Day:
    """A history of some hours, the site read from its start, and its replay."""

    dsn: str
    site: Site
    replay: Done


@pytest.fixture(scope="module")
def day(postgres_server: TestServer) -> Iterator[Day]:
    dsn = postgres_server.clone()
    end = quiet_days(dsn, seed=2, steps=120)
    site = asyncio.run(read_site(dsn, START, end))
    yield Day(dsn, site, replayed(postgres_server, site))
    postgres_server.drop(dsn)


def replayed(server: TestServer, site: Site) -> Done:
    dsn = server.clone()
    try:
        return asyncio.run(
            replay_site(dsn, sources=read_sources(), site=site, progress=lambda done, total: None)
        )
    finally:
        server.drop(dsn)


def test_a_replay_with_the_real_settings_comes_close_to_the_history(day: Day) -> None:
    found = comparison(day.site, [day.replay], "")
    assert found["jobs"] > 20
    assert found["not_started"] == {"replayed": 0}
    assert found["closeness"]["within_60_s"] > 0.95
    real, replayed = found["waits"]["real"], found["waits"]["replayed"]
    assert real["mean_s"] > 60
    assert replayed["mean_s"] == pytest.approx(real["mean_s"], rel=0.05)


@pytest.mark.long
def test_an_anonymous_history_gives_the_same_replay(day: Day, postgres_server: TestServer) -> None:
    again = replayed(postgres_server, anonymised(day.site))
    assert [one.start_s for one in again.starts] == [one.start_s for one in day.replay.starts]


def test_a_window_begins_with_the_jobs_that_run_and_wait_then(
    day: Day, postgres_server: TestServer
) -> None:
    start = START + timedelta(seconds=day.site.length_s // 3)
    end = START + timedelta(seconds=day.site.length_s)
    site = asyncio.run(read_site(day.dsn, start, end))
    running = [
        (job.id, task) for job in site.jobs for task in job.tasks
        if task.spans and task.spans[0].start_s < 0
    ]  # fmt: skip
    assert running
    done = replayed(postgres_server, site)
    starts = {(one.job_id, one.number): one for one in done.starts}
    for job_id, task in running:
        start = starts[job_id, task.number]
        assert start.start_s == task.spans[0].start_s
        assert start.nodes.split() == list(task.spans[0].nodes)
    assert comparison(site, [done], "")["closeness"]["within_60_s"] > 0.9


@pytest.mark.long
def test_more_nodes_shorten_waits_and_fewer_lengthen_them(
    day: Day, postgres_server: TestServer
) -> None:
    more = applied(day.site, Scenario(add=("h100:8x4", "l4:4x2")))
    fewer = applied(day.site, Scenario(remove=("l1",)))
    assert len(more.tables["node"]) == len(fewer.tables["node"]) + 7
    for site, sign in ((more, -1), (fewer, 1)):
        found = comparison(day.site, [day.replay, replayed(postgres_server, site)], "")
        waits = found["waits"]
        assert (waits["changed"]["mean_s"] - waits["replayed"]["mean_s"]) * sign > 0
        assert sum(row["jobs"] for row in found["by_user"]) == found["compared"]


@pytest.mark.long
def test_a_job_that_fits_no_node_of_the_scenario_is_reported(
    day: Day, postgres_server: TestServer
) -> None:
    site = applied(day.site, Scenario(remove=("l0", "l1")))
    done = replayed(postgres_server, site)
    found = comparison(day.site, [day.replay, done], "no l4")
    [refusal] = found["refused"]
    assert refusal["jobs"] > 0
    l4 = [row for row in matched(day.site, [done]) if row.starts_s[0] is None]
    assert len(l4) == found["not_started"]["changed"] > 0


@pytest.mark.long
def test_a_policy_and_a_limit_change_the_order(day: Day, postgres_server: TestServer) -> None:
    policy = Scenario(policy=Policy(name="fifo", plan_depth=4))
    limit = Scenario(settings=("qos:normal:user:gpus=4",))
    for scenario in (policy, limit):
        changed = replayed(postgres_server, applied(day.site, scenario))
        assert [one.start_s for one in changed.starts] != [one.start_s for one in day.replay.starts]


def test_reading_changes_nothing(day: Day) -> None:
    with Sql(day.dsn) as sql:
        before = contents(sql)
        asyncio.run(read_site(day.dsn, START, START + timedelta(days=1)))
        assert contents(sql) == before


def contents(sql: Sql) -> dict[str, str]:
    """A digest of each table."""
    tables = sql.values(
        "select format('%I.%I', schemaname, tablename) from pg_tables where schemaname like 'odc%'"
    )
    return {
        table: sql.value(f"select md5(string_agg(t::text, ',' order by t::text)) from {table} as t")
        for table in tables
    }


def test_a_window_without_jobs_is_refused(day: Day) -> None:
    with pytest.raises(BadRequest, match="no job started between 2020-01-01 00:00"):
        asyncio.run(
            read_site(day.dsn, START.replace(year=2020, month=1, day=1, hour=0),
                      START.replace(year=2020, month=1, day=2))
        )  # fmt: skip


def test_a_database_without_a_queue_is_refused(postgres_server: TestServer) -> None:
    dsn = postgres_server.clone()
    with Sql(dsn) as sql:
        sql.execute("drop schema odc cascade")
    with pytest.raises(OdcError, match="this database has no queue of odc"):
        asyncio.run(read_site(dsn, START, START + timedelta(days=1)))
    postgres_server.drop(dsn)


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 3, 5])
def test_eventful_days_can_be_replayed(
    database_url: str, postgres_server: TestServer, seed: int
) -> None:
    end = quiet_days(database_url, seed, steps=200, eventful=True)
    site = asyncio.run(read_site(database_url, START, end))
    assert site.changes
    found = comparison(site, [replayed(postgres_server, site)], "")
    # Preemption, and which job comes first within a second, depend on chance.
    assert found["closeness"]["within_60_s"] > 0.5
    assert found["not_started"] == {"replayed": 0}
