"""Expected starts are refreshed beside the passes, and their failures stop no pass."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from odcd.clock import SystemClock
from odcd.database.pool import Database
from odcd.errors import LeadershipLost
from odcd.loops.forecaster import APPLICATION, Forecaster
from tests.support.builders.jobs import NOW, Queue, a_cluster
from tests.support.fakes.clock import VirtualClock
from tests.support.harness.database import Sql


def a_waiting_job(sql: Sql) -> int:
    a_cluster(sql, h100=1)
    queue = Queue(sql)
    queue.submit(gpus_per_node=8)
    waits = queue.submit(gpus_per_node=8)
    queue.start()
    return waits


async def forecasting(
    dsn: str, then: Callable[[Database, Forecaster], Any], *, term: int = 0
) -> None:
    """Run a forecaster until `then` is done; its error, if any, is raised."""
    async with Database(dsn) as database:
        forecaster = Forecaster(term, database, SystemClock(), timedelta(seconds=30))
        running = asyncio.create_task(forecaster.run())
        work = asyncio.create_task(then(database, forecaster))
        try:
            async with asyncio.timeout(60):
                await asyncio.wait([running, work], return_when=asyncio.FIRST_COMPLETED)
            if running.done():
                running.result()
            work.result()
        finally:
            for task in (running, work):
                task.cancel()
            await asyncio.wait([running, work])


async def seen(database: Database, query: str) -> Any:
    """The first answer that is true."""
    while True:
        value = await database.fetchval(query)
        if value:
            return value
        await asyncio.sleep(0.02)


def test_a_new_job_that_waits_gets_an_expected_start(database_url: str) -> None:
    with Sql(database_url) as sql:
        waits = a_waiting_job(sql)

    async def then(database: Database, forecaster: Forecaster) -> None:
        assert await seen(database, "select job_id from odc.eta") == waits
        assert await database.fetchval("select count(*) from odc.prediction") == 1

    asyncio.run(forecasting(database_url, then))


def test_a_forecaster_of_an_old_term_stops(database_url: str) -> None:
    with Sql(database_url) as sql:
        sql.execute("update odc.term set term = 2")

    async def then(database: Database, forecaster: Forecaster) -> None:
        await asyncio.Event().wait()

    with pytest.raises(LeadershipLost):
        asyncio.run(forecasting(database_url, then, term=1))


def test_the_forecaster_reconnects_after_a_broken_connection(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("odcd.loops.forecaster.RETRY_S", 0.05)
    monkeypatch.setattr("odcd.loops.forecaster.MIN_GAP_S", 0.05)
    with Sql(database_url) as sql:
        a_waiting_job(sql)
    backend = (
        f"select pid from pg_stat_activity where application_name = '{APPLICATION}' "
        "and datname = current_database()"
    )

    async def then(database: Database, forecaster: Forecaster) -> None:
        first = await seen(database, backend)
        await database.fetchval(f"select pg_terminate_backend({first})")
        while True:
            forecaster.wake()
            if await seen(database, backend) != first:
                break
        await database.execute("delete from odc.eta")
        forecaster.wake()
        await seen(database, "select job_id from odc.eta")

    asyncio.run(forecasting(database_url, then))


def test_a_bug_in_the_forecast_stops_nothing_else(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("odcd.loops.forecaster.RETRY_S", 0.05)
    with Sql(database_url) as sql:
        a_waiting_job(sql)
        sql.execute("alter table odc.eta rename to eta_gone")

    async def then(database: Database, forecaster: Forecaster) -> None:
        await asyncio.sleep(0.3)
        await database.execute("alter table odc.eta_gone rename to eta")
        await seen(database, "select job_id from odc.eta")

    asyncio.run(forecasting(database_url, then))


def test_a_refresh_reports_its_duration(database_url: str) -> None:
    durations: list[float] = []

    async def refresh() -> None:
        async with Database(database_url) as database, database.dedicated() as session:
            forecaster = Forecaster(
                0, database, VirtualClock(NOW), timedelta(seconds=30), durations.append
            )
            await forecaster.refresh_once(session)

    asyncio.run(refresh())
    assert durations == [0.0]
