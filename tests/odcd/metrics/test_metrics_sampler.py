"""The cluster is measured apart from the scheduler, while this daemon leads and is scraped."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

import pytest

from odcd.clock import SystemClock
from odcd.database.pool import Database
from odcd.errors import LeadershipLost
from odcd.metrics import Metrics, sampler
from odcd.metrics.sampler import APPLICATION, Sampler
from tests.support.builders.jobs import Queue, a_cluster
from tests.support.harness.database import Sql, TestServer

PENDING = 'odcd_jobs{partition="main",state="PENDING"}'


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A first sample is waited for, and no measurement given up, for as long as it takes."""
    monkeypatch.setattr(sampler, "PATIENCE_S", 60.0)
    monkeypatch.setattr(sampler, "MAX_S", 60.0)


class Leading:
    """A daemon's metrics, and its sampler working under a term."""

    def __init__(self, database: Database, measures: dict[str, float] | None) -> None:
        self.database = database
        self.metrics = Metrics()
        database._watch = self.metrics
        more = {} if measures is None else {"measures": measures}
        self.sampler = Sampler(database, SystemClock(), self.metrics, **more)
        self.running: asyncio.Task[None] | None = None

    def lead(self, term: int = 0) -> None:
        self.running = asyncio.create_task(self.sampler.run(term, dict))

    async def connected(self) -> None:
        while not self.sampler._measuring:
            await asyncio.sleep(0.005)

    async def scrape(self) -> dict[str, float]:
        body, _ = await self.sampler.scrape(None)
        lines = [line for line in body.decode().splitlines() if not line.startswith("#")]
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines}

    async def until(self, **expected: float) -> dict[str, float]:
        """The first scrape with these values."""
        while not expected.items() <= (values := await self.scrape()).items():
            await asyncio.sleep(0.02)
        return values

    def calls(self, operation: str) -> float:
        """The number of measurements."""
        name = "odcd_database_request_seconds_count"
        labels = {"operation": operation}
        return self.metrics.registry.get_sample_value(name, labels) or 0.0

    async def end(self) -> None:
        if self.running is not None:
            self.running.cancel()
            await asyncio.wait([self.running])


@asynccontextmanager
async def a_daemon(dsn: str, measures: dict[str, float] | None = None) -> AsyncGenerator[Leading]:
    async with Database(dsn, size=1) as database:
        leading = Leading(database, measures)
        try:
            yield leading
        finally:
            await leading.end()


def run(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def within() -> None:
        async with asyncio.timeout(120):
            await work()

    asyncio.run(within())


def test_a_leader_exports_cluster_metrics_and_a_follower_only_its_own(database_url: str) -> None:
    async def work() -> None:
        async with a_daemon(database_url) as one, a_daemon(database_url) as other:
            one.lead()
            one.metrics.leading(True)
            await one.connected()
            values, beside = await one.scrape(), await other.scrape()
            assert values[PENDING] == 0
            assert (values["odcd_leader"], beside["odcd_leader"]) == (1, 0)
            assert abs(values["odcd_sample_timestamp_seconds"] - time.time()) < 60
            assert not [name for name in beside if name.startswith("odcd_jobs")]
            await one.end()
            gone = await one.scrape()
            assert not [name for name in gone if name.startswith("odcd_jobs")]

    run(work)


@pytest.mark.long
def test_counters_go_on_under_another_leader(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampler, "EVERY_S", 0.05)
    with Sql(database_url) as sql:
        a_cluster(sql, h100=1)
        queue = Queue(sql)

        async def work() -> None:
            name = 'odcd_jobs_submitted_total{partition="main"}'
            async with a_daemon(database_url) as one, a_daemon(database_url) as other:
                one.lead(term=0)
                await one.connected()
                # Events are counted when they are final, which may be a moment later.
                await one.until(**{name: 2})
                await asyncio.to_thread(more)
                other.lead(term=1)
                await other.connected()
                await other.until(**{name: 3})
                one.sampler._wake.set()
                assert one.running is not None
                one.sampler._scraped_at = float("-inf")
                with pytest.raises(LeadershipLost):
                    await one.running

        def more() -> None:
            sql.execute("update odc.term set term = 1")
            queue.submit(gpus=1)

        queue.submit(gpus=1)
        queue.submit(gpus=1)
        run(work)


@pytest.mark.long
def test_a_scrape_without_database_is_answered_at_once_and_reports_it(
    postgres_server: TestServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampler, "EVERY_S", 0.05)
    dsn = postgres_server.clone()

    async def work() -> None:
        async with a_daemon(dsn) as daemon:
            daemon.lead()
            await daemon.connected()
            assert (await daemon.scrape())["odcd_database_up"] == 1
            await asyncio.to_thread(postgres_server.drop, dsn)
            daemon.sampler._wake.set()
            while (values := await daemon.scrape())["odcd_database_up"]:
                await asyncio.sleep(0.01)
            while daemon.sampler._measuring:
                await asyncio.sleep(0.01)
            begun = time.perf_counter()
            values = await daemon.scrape()
            assert time.perf_counter() - begun < sampler.PATIENCE_S / 2
            assert not [name for name in values if name.startswith("odcd_jobs")]

    run(work)


def test_a_hanging_measurement_does_not_stop_the_others(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampler, "EVERY_S", 0.01)
    monkeypatch.setattr(sampler, "MAX_S", 0.3)
    with Sql(database_url) as sql:
        sql.execute(
            "create function odc.measure_hang(p_now timestamptz) returns table (metric text, "
            "labels text[], value float8) language sql as "
            "$$ select 'odcd_eta_scored', '{}'::text[], 1 from pg_sleep(60) $$"
        )

    async def work() -> None:
        measures = {"measure_hang": 3600.0, "measure_queue": 0.0, "measure_nothing": 3600.0}
        async with a_daemon(database_url, measures) as daemon:
            daemon.lead()
            await daemon.connected()
            # This one may also take that long on a busy machine, but not forever.
            values = await daemon.until(**{PENDING: 0})
            assert values['odcd_sample_errors_total{measure="measure_hang"}'] == 1
            assert values['odcd_sample_errors_total{measure="measure_nothing"}'] == 1
            assert values["odcd_database_up"] == 1

    run(work)


def test_an_event_that_cannot_be_counted_does_not_block_the_others(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Sql(database_url) as sql:
        orphan = "insert into odc.event (at, kind, actor, detail) values (now(), $1, 'odcd', $2)"
        for _ in range(30):
            sql.execute(orphan, "orphan", '{"name": "x"}')
        sql.execute(orphan, "submitted", '{"attempt": "none"}')
        for _ in range(30):
            sql.execute(orphan, "orphan", '{"name": "x"}')
        bad = sql.value("select id from odc.event where kind = 'submitted'")

    def mend() -> None:
        with Sql(database_url) as sql:
            sql.execute("update odc.event set kind = 'orphan', detail = '{}' where id = $1", bad)

    async def work() -> None:
        async with a_daemon(database_url, {"measure_tally": 0.0}) as daemon:
            daemon.lead()
            await daemon.connected()
            orphans = 'odcd_orphans_found_total{kind="pod"}'
            values = await daemon.until(odcd_tally_events_aside=1, **{orphans: 60})
            assert values['odcd_sample_errors_total{measure="fold_tally"}'] == 1
            await daemon.end()
            # The next leader tries it again.
            await asyncio.to_thread(mend)
            daemon.lead()
            await daemon.until(odcd_tally_events_aside=0, **{orphans: 61})

    run(work)
    [record] = [one for one in caplog.records if one.message == "metrics.event_aside"]
    assert (record.levelname, record.__dict__["event_id"]) == ("ERROR", bad)


def test_a_slow_fold_is_retried_with_fewer_events_and_delays_no_sample(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampler, "EVERY_S", 0.01)
    monkeypatch.setattr(sampler, "SHARE", 1)
    with Sql(database_url) as sql:
        sql.execute(
            "create or replace function odc.fold_tally(p_term bigint, p_limit integer, "
            "p_now timestamptz) returns integer language plpgsql as $$ begin if p_limit > 300 then "
            # As the limit would, which a busy machine may pass elsewhere, too.
            "perform pg_cancel_backend(pg_backend_pid()), pg_sleep(60); "
            "end if; return 0; end; $$"
        )

    async def work() -> None:
        async with a_daemon(database_url, {"measure_queue": 0.0}) as daemon:
            daemon.lead()
            await daemon.connected()
            name = 'odcd_sample_errors_total{measure="fold_tally"}'
            while (values := await daemon.scrape())[name] < 3:
                assert values[PENDING] == 0
                await asyncio.sleep(0.02)
            stamp = values["odcd_sample_timestamp_seconds"]
            while (values := await daemon.scrape())["odcd_sample_timestamp_seconds"] <= stamp + 0.1:
                await asyncio.sleep(0.02)
            # 2000, 1000 and 500 took too long; nothing was put aside for it.
            assert values[name] == 3
            assert values["odcd_database_up"] == 1

    run(work)


def test_nothing_is_measured_without_scrapes(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampler, "EVERY_S", 0.01)
    monkeypatch.setattr(sampler, "SCRAPED_S", 0.3)
    monkeypatch.setattr(sampler, "FOLD_EVERY_S", 0.05)
    monkeypatch.setattr(sampler, "SHARE", 1)

    async def work() -> None:
        async with a_daemon(database_url, {"measure_server": 0.0}) as daemon:
            daemon.lead()
            await daemon.connected()

            def measured() -> float:
                return daemon.calls("measure_server")

            async def some_rounds() -> None:
                """Counting events continues without any scrape."""
                before = daemon.calls("fold_tally")
                while daemon.calls("fold_tally") < before + 3:
                    await asyncio.sleep(0.01)

            await some_rounds()
            assert measured() == 0
            while measured() <= 2:
                await daemon.scrape()
                await asyncio.sleep(0.01)
            while daemon.sampler._is_scraped:
                await asyncio.sleep(0.01)
            await some_rounds()
            rest = measured()
            await some_rounds()
            assert measured() == rest
            # And it returns with the first scrape, which gets current values.
            await daemon.scrape()
            assert measured() > rest

    run(work)


def test_the_sampler_has_its_own_connection_with_a_limit(database_url: str) -> None:
    async def work() -> None:
        async with a_daemon(database_url) as daemon:
            daemon.lead()
            await daemon.connected()
            async with daemon.database.dedicated(name=APPLICATION, limit_s=5.0) as session:
                assert await session.fetchval("show statement_timeout") == "5s"
            found = await daemon.database.fetchval(
                "select count(*) from pg_stat_activity where application_name = $1", APPLICATION
            )
            assert found >= 1

    run(work)
