"""An upgrade while sessions read or write: none of them waits long for it."""

from __future__ import annotations

import asyncio
import logging
import shutil
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from odcd.clock import SystemClock
from odcd.database import patience, schema
from odcd.database.schema import Installed
from odcd.errors import DatabaseDown
from tests.support.harness.database import Sql

TABLES = ("job", "pending", "running", "allocation", "node", "node_free", "array_job")
LOCK_TIMEOUT_S = 1.0
A_BIT_S = 10.0
"""Generous for a busy machine: without a lock timeout they would wait for the reader forever."""


@pytest.fixture(autouse=True)
def shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience.Patience.__init__, "__defaults__", (LOCK_TIMEOUT_S, 60.0))
    monkeypatch.setattr(patience, "FIRST_PAUSE_S", 0.5)
    monkeypatch.setattr(patience, "LONGEST_PAUSE_S", 0.5)


@pytest.fixture
def newer(tmp_path: Path) -> Path:
    """The real folder, with a table changed and a function of its own."""
    folder = tmp_path / "sql"
    shutil.copytree(schema.sql_folder(), folder)
    number = schema.read_source(folder).version + 1
    (folder / f"migrations/{number:04}_more.sql").write_text(
        "alter table job add column more text;"
    )
    return folder


def install(dsn: str, folder: Path) -> Installed:
    return asyncio.run(schema.install(dsn, SystemClock(), schema.read_source(folder)))


def touch_function(folder: Path) -> None:
    path = folder / "functions/scheduler/leader/read_term.sql"
    path.write_text(path.read_text() + "\n-- Another version.\n")


def reader(dsn: str) -> Sql:
    """A backup under way, which has read every table."""
    session = Sql(dsn)
    session.execute("set application_name = 'odc backup'")
    session.execute("begin")
    for table in TABLES:
        session.rows(f"select 1 from odc.{table} limit 1")
    return session


def until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def waits_for_a_lock(dsn: str) -> bool:
    with Sql(dsn) as sql:
        return sql.value(
            "select exists (select from pg_stat_activity where datname = current_database() "
            "and application_name = 'odcd install' and wait_event_type = 'Lock')"
        )


def use_tables(dsn: str) -> float:
    """Run the table accesses of submit and show; returns the seconds that took."""
    begun = time.monotonic()
    with Sql(dsn) as sql:
        sql.execute("set lock_timeout = '30s'")
        for table in TABLES:
            sql.rows(f"select 1 from odc.{table} limit 1")
        sql.execute("update odc.job set name = name where false")
        sql.execute("insert into odc.job_text values ('d', 'x') on conflict do nothing")
        sql.execute("delete from odc.pending where false")
    return time.monotonic() - begun


@pytest.mark.long
@pytest.mark.parametrize("what", ["migration", "functions"])
def test_an_upgrade_that_waits_for_a_reader_blocks_no_other_session(
    database_url: str, newer: Path, what: str, caplog: pytest.LogCaptureFixture
) -> None:
    if what == "functions":
        for path in (newer / "migrations").glob("*_more.sql"):
            path.unlink()
        touch_function(newer)
    with ThreadPoolExecutor(1) as aside, closing(reader(database_url)) as backup:
        upgrade: Future[Installed] = aside.submit(install, database_url, newer)
        until(lambda: waits_for_a_lock(database_url))
        waited = [use_tables(database_url) for _ in range(3)]
        assert max(waited) < LOCK_TIMEOUT_S + A_BIT_S, waited
        assert not upgrade.done()
        until(lambda: "schema.blocked" in caplog.text)
        backup.execute("commit")
        assert upgrade.result(60).loaded > 0
    record = next(r for r in caplog.records if r.getMessage() == "schema.blocked")
    assert record.levelno == logging.WARNING
    [by] = record.__dict__["by"]
    assert by.startswith("odc backup (process ")
    assert "idle in transaction, since 20" in by


@pytest.mark.long
def test_an_upgrade_that_never_gets_its_locks_names_their_holder(
    database_url: str, newer: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience.Patience.__init__, "__defaults__", (LOCK_TIMEOUT_S, 2.0))
    with closing(reader(database_url)), pytest.raises(DatabaseDown) as caught:
        install(database_url, newer)
    assert "blocked by odc backup (process " in caught.value.message
    with Sql(database_url) as sql:
        assert sql.value("select count(*) from odc.job") == 0
        assert not sql.value("select to_regclass('odc_past.job') is null"), "nothing was undone"
    assert install(database_url, newer).loaded > 0


@pytest.mark.long
def test_a_migration_outside_a_transaction_gives_way_too(database_url: str, newer: Path) -> None:
    [path] = (newer / "migrations").glob("*_more.sql")
    path.write_text(
        "-- transaction: none\n"
        "alter table odc.idempotency add column if not exists more text;\n"
        "alter table odc.idempotency add column if not exists most text;\n"
    )
    with ThreadPoolExecutor(1) as aside, closing(Sql(database_url)) as backup:
        backup.execute("begin")
        backup.rows("select 1 from odc.idempotency")
        upgrade = aside.submit(install, database_url, newer)
        until(lambda: waits_for_a_lock(database_url))
        begun = time.monotonic()
        with Sql(database_url) as sql:
            sql.rows("select 1 from odc.idempotency")
        assert time.monotonic() - begun < LOCK_TIMEOUT_S + A_BIT_S
        backup.execute("commit")
        assert upgrade.result(60).migrations == (path.name,)


@pytest.mark.long
def test_an_index_built_concurrently_waits_for_a_reader_without_giving_up(
    database_url: str, newer: Path
) -> None:
    """An interrupted index build leaves an index that is never used: it is built again."""
    [path] = (newer / "migrations").glob("*_more.sql")
    path.write_text(
        "-- transaction: none\n"
        "create index concurrently if not exists licence_more on odc.licence (name);\n"
    )
    with Sql(database_url) as sql:
        sql.execute("create index licence_more on odc.licence (name)")
        sql.execute(
            "update pg_index set indisvalid = false where indexrelid = 'odc.licence_more'::regclass"
        )
    with ThreadPoolExecutor(1) as aside, closing(Sql(database_url)) as backup:
        backup.execute("begin")
        backup.rows("select 1 from odc.licence")
        upgrade = aside.submit(install, database_url, newer)
        until(lambda: waits_for_a_lock(database_url))
        with Sql(database_url) as sql:
            sql.execute("update odc.licence set name = name")
        time.sleep(2 * LOCK_TIMEOUT_S)
        assert not upgrade.done()
        backup.execute("commit")
        assert upgrade.result(60).migrations == (path.name,)
    with Sql(database_url) as sql:
        assert sql.value(
            "select indisvalid from pg_index where indexrelid = 'odc.licence_more'::regclass"
        )
