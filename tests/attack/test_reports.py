"""A login that may read reports stops nothing: Grafana sends any statement of its viewers."""

from __future__ import annotations

import asyncio
import os
import pwd
import re
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import asyncpg
import pytest
import yaml

from odcd.clock import SystemClock
from odcd.database import schema
from odcd.doctor import reports
from odcd.errors import DatabaseBusy, DatabaseDown, TooLarge
from odcd.home.postgres import EmbeddedPostgres
from odcd.home.postgres_roles import ROLE
from tests.support.builders.jobs import Queue, a_cluster
from tests.support.harness.database import MAJOR, Sql, admit_root, make_home, remove_home

CLUSTER = Path("k8s/components/cloudnative-pg/cluster.yaml")
DENIED = asyncpg.InsufficientPrivilegeError
ATTACKS = (
    "select pg_advisory_lock(7300196)",
    "select pg_try_advisory_lock_shared(7300196)",
    "select pg_advisory_xact_lock(0x6F6463)",
    "select lo_from_bytea(0, 'x')",
    "create temporary table large (x text)",
    "select pg_logical_emit_message(false, 'x', repeat('x', 1000000))",
)


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_reader_of_reports_takes_no_locks_and_stores_nothing(
    database_url: str, attack: str
) -> None:
    """Before: with the first of them no pass ended any more, and no job of any user started."""
    with Sql(database_url) as sql, Sql(database_url) as reader:
        assert sql.value("select odc.grant_reports()")
        reader.execute("set role odc_report")
        with pytest.raises(DENIED):
            reader.execute(attack)
        assert reader.value("select count(*) from odc_report.queue") == 0
        a_cluster(sql, h100=1)
        queue = Queue(sql)
        sql.execute("set lock_timeout = '2s'")
        job_id = queue.submit()
        assert queue.start() == [job_id]


@pytest.fixture
def opened(database_url: str) -> Iterator[Sql]:
    """A database with the rights that PostgreSQL gives to every login, in a transaction."""
    with Sql(database_url) as sql:
        sql.begin()
        sql.execute("create role test_owner")
        sql.execute("grant execute on function pg_try_advisory_xact_lock(bigint) to public")
        sql.execute(f"grant temporary on database {name_of(sql)} to public")
        yield sql
        sql.rollback()


def name_of(sql: Sql) -> str:
    return sql.value("select quote_ident(current_database())")


def test_odcds_own_role_keeps_its_locks(opened: Sql) -> None:
    """If it is no superuser, as with CloudNativePG, it can grant the reports, but not fence the
    locks."""
    for name in ("odc", "odc_report"):
        opened.execute(f"alter schema {name} owner to test_owner")
    opened.execute("set local role test_owner")
    assert not opened.value("select odc.fence_locks()")
    opened.execute("reset role")
    assert opened.value("select odc.fence_locks()")
    opened.execute("set local role test_owner")
    assert opened.value("select odc.fence_locks()")
    assert opened.value("select pg_try_advisory_xact_lock(7300196)")
    opened.execute("create temporary table ours (x text)")


def test_the_first_start_of_a_cluster_fences_the_locks(opened: Sql) -> None:
    """The statements of the manifest, which CloudNativePG runs as a superuser."""
    manifest = yaml.safe_load(CLUSTER.read_text())
    for statement in manifest["spec"]["bootstrap"]["initdb"]["postInitApplicationSQL"]:
        here = statement.replace("database odc ", f"database {name_of(opened)} ")
        opened.execute(re.sub(r"to odc\b", "to test_owner", here))
    opened.execute("set local role odc_report")
    with pytest.raises(DENIED):
        opened.value("select pg_try_advisory_xact_lock(7300196)")
    with pytest.raises(DENIED):
        opened.execute("create temporary table large (x text)")


@pytest.fixture
def grafana(database_url: str) -> Iterator[str]:
    """The DSN of a login for reports, as the documents make it."""
    name = f"test_grafana_{os.getpid()}"
    with Sql(database_url) as sql:
        assert sql.value("select odc.grant_reports()")
        sql.execute(f"create role {name} login in role odc_report")
        mapping = Path(sql.value("show data_directory")) / "pg_ident.conf"
        line = f"odc {pwd.getpwuid(os.geteuid()).pw_name} {name}\n"
        with mapping.open("a") as file:
            file.write(line)
        assert sql.value("select pg_reload_conf()")
        yield database_url.replace(f"//{ROLE}@", f"//{name}@")
        mapping.write_text(mapping.read_text().replace(line, ""))
        assert sql.value("select pg_reload_conf()")
        sql.execute(f"drop role {name}")


def connected(dsn: str) -> Sql:
    """The server reads its settings again a moment after it was asked to."""
    for _ in range(600):
        try:
            return Sql(dsn)
        except DatabaseDown:
            time.sleep(0.05)
    raise AssertionError("the server never let the reader in")


def test_an_open_transaction_of_a_reader_holds_back_no_events(
    database_url: str, grafana: str
) -> None:
    """Before: with `select pg_current_xact_id(), pg_sleep(100000)` of a viewer no user got an event
    any more: streams, waits, the page and the counters stopped. The viewer can also turn off the
    login's statement_timeout."""
    with Sql(database_url) as sql, connected(grafana) as reader:
        reader.execute("set statement_timeout = 0")
        reader.execute("begin")
        assert reader.value("select pg_current_xact_id()::text")
        a_cluster(sql, h100=1)
        Queue(sql).submit()
        kinds = "select body::json ->> 'kind' from odc.events_after(0, 100, null)"
        assert sql.values(kinds)[-1] == "submitted"
        assert sql.value("select odc.last_event()") == sql.value("select max(id) from odc.event")
        reader.execute("rollback")


def test_the_leader_ends_the_long_statements_of_a_reader(database_url: str, grafana: str) -> None:
    """Before: a viewer turned off the login's statement_timeout and kept the CPUs of a primary."""
    with Sql(database_url) as sql, connected(grafana) as reader:
        reader.execute("set statement_timeout = 0")
        assert sql.value("select odc.reports_lack()") == []
        late = SystemClock().now() + timedelta(minutes=2)

        def end() -> None:
            with Sql(database_url) as leader:
                while not leader.value("select odc.end_long_reports($1, '60 s')", late):
                    time.sleep(0.05)

        ending = threading.Thread(target=end)
        ending.start()
        with pytest.raises(DatabaseBusy):
            reader.value("select pg_sleep(600)::text")
        ending.join()


def test_the_doctor_names_what_an_operator_must_grant(opened: Sql) -> None:
    """In a database whose owner, odcd's role, is no superuser."""
    for name in ("odc", "odc_report"):
        opened.execute(f"alter schema {name} owner to test_owner")
    opened.execute("create role test_reader in role odc_report")
    opened.execute("revoke select on all tables in schema odc_report from odc_report")
    assert opened.value("select odc.reports_lack()") == ["views", "locks", "limit"]
    assert opened.value("select odc.grant_reports()")
    assert opened.value("select odc.reports_lack()") == []


def test_the_doctor_prints_the_statement_to_run(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for lacking, verdict in ((["limit"], "note"), ([], "ok"), (None, "ok")):

        async def lacks(dsn: str, lacking: list[str] | None = lacking) -> list[str] | None:
            return lacking

        monkeypatch.setattr(reports, "_lacking", lacks)
        [finding] = reports.examine_reports(database_url)
        assert finding.verdict == verdict
        assert ("odc.grant_reports()" in str(finding.hint)) == (verdict == "note")
    monkeypatch.undo()
    assert [one.verdict for one in reports.examine_reports(database_url)] != ["bad"]


def flood(reader: Sql) -> None:
    for n in range(500):
        reader.execute("select pg_notify('y', repeat('x', 7000) || $1)", str(n))


@pytest.mark.long
@pytest.mark.skipif(MAJOR < 17, reason="the size of the queue is fixed")
def test_a_full_queue_of_notifications_stops_no_submit() -> None:
    """Before: a reader that listens in an open transaction, and another one that notifies, filled
    it. Then every transaction that notifies failed: submits, starts and ends of all users."""
    home = make_home()
    postgres = EmbeddedPostgres(
        home, MAJOR, durable=False, settings={"max_notify_queue_pages": "64"}
    )
    try:
        postgres.start()
        admit_root(postgres)
        asyncio.run(schema.install(postgres.dsn, SystemClock()))
        with Sql(postgres.dsn) as sql, Sql(postgres.dsn) as deaf, Sql(postgres.dsn) as loud:
            for reader in (deaf, loud):
                reader.execute("set role odc_report")
            deaf.execute("listen x")
            deaf.execute("begin")
            deaf.value("select 1")
            with pytest.raises(TooLarge, match="too many notifications"):
                flood(loud)
            a_cluster(sql, h100=1)
            queue = Queue(sql)
            job_id = queue.submit()
            assert queue.start() == [job_id]
            deaf.execute("rollback")
    finally:
        remove_home(home)
