"""Two versions of odc at one database: the older one never undoes what the newer one installed."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from pathlib import Path

import pytest

from odcd.clock import SystemClock
from odcd.database import schema, schema_guard
from odcd.database.schema import Installed
from odcd.database.schema_guard import Beside
from odcd.errors import DatabaseDown, OdcError, SchemaTooNew, WrongState
from tests.support.harness.database import Sql

COUNT = "functions/thing/count_things.sql"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """The sql folder of an older odc."""
    folder = tmp_path / "old"
    write(folder, "migrations/0001_first.sql", "create table thing (id integer primary key);")
    write(folder, COUNT, function("select 1"))
    write(folder, "functions/leader/make_partitions.sql", function("select 0", "make_partitions"))
    return folder


@pytest.fixture
def new(tmp_path: Path, old: Path) -> Path:
    """Of the next version: daemons of the old one work on it."""
    folder = tmp_path / "new"
    shutil.copytree(old, folder)
    write(folder, "migrations/0002_second.sql", "alter table thing add column more text;")
    write(folder, COUNT, function("select 2"))
    write(folder, "compatible_since", "1\n")
    return folder


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema_guard, "GONE_WITHIN_S", 0.3)


def write(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def function(body: str, name: str = "count_things") -> str:
    return (
        f"create or replace function odc.{name}() returns integer\n"
        f"language sql stable as $$ {body} $$;\n"
    )


def install(dsn: str, folder: Path, beside: Beside = "any") -> Installed:
    source = schema.read_source(folder)
    return asyncio.run(schema.install(dsn, SystemClock(), source, beside=beside))


def count(dsn: str) -> int:
    with Sql(dsn) as sql:
        return sql.value("select odc.count_things()")


def a_daemon(dsn: str) -> AbstractContextManager[Sql]:
    """A session like those of a daemon."""
    session = Sql(dsn)
    session.execute("set application_name = 'odcd-leader'")
    return closing(session)


def test_an_older_odc_leaves_the_functions_of_a_compatible_newer_one(
    empty_database_url: str, old: Path, new: Path
) -> None:
    install(empty_database_url, old)
    install(empty_database_url, new)
    done = install(empty_database_url, old, "none")
    assert (done.version, done.loaded, done.dropped) == (2, 0, ())
    assert count(empty_database_url) == 2


def test_a_migration_without_statements_orders_two_sets_of_functions(
    empty_database_url: str, old: Path, new: Path
) -> None:
    write(new, "migrations/0002_second.sql", "-- Functions only.\n")
    install(empty_database_url, new)
    assert install(empty_database_url, old).version == 2
    assert count(empty_database_url) == 2


def test_an_older_odc_refuses_a_newer_database_that_it_does_not_work_on(
    empty_database_url: str, old: Path, new: Path
) -> None:
    write(new, "compatible_since", "2")
    install(empty_database_url, new)
    for beside in ("any", "compatible", "none"):
        with pytest.raises(SchemaTooNew, match="daemons that know version 2 or newer can use it"):
            install(empty_database_url, old, beside)
    assert count(empty_database_url) == 2


def test_a_folder_that_declares_nothing_is_compatible_with_itself_only(
    empty_database_url: str, old: Path, new: Path
) -> None:
    (new / "compatible_since").unlink()
    install(empty_database_url, new)
    with pytest.raises(SchemaTooNew):
        install(empty_database_url, old)


def test_an_old_daemon_starts_on_an_interrupted_compatible_upgrade(
    empty_database_url: str, old: Path, new: Path
) -> None:
    """A migration was applied, the functions do not load: an old daemon still starts."""
    install(empty_database_url, old)
    write(
        new,
        "migrations/0002_second.sql",
        "-- transaction: none\nalter table odc.thing add column if not exists more text;\n",
    )
    write(new, COUNT, function("select nobody_knows()"))
    with pytest.raises(OdcError, match="does not load"):
        install(empty_database_url, new)
    assert install(empty_database_url, old, "none").version == 2
    assert count(empty_database_url) == 1


def test_a_database_installed_before_versions_were_kept_is_upgraded(
    empty_database_url: str, old: Path, new: Path
) -> None:
    install(empty_database_url, old)
    with Sql(empty_database_url) as sql:
        sql.execute("alter table odc.migration drop column compatible_since")
    assert install(empty_database_url, old).loaded == 0
    assert install(empty_database_url, new, "none").version == 2


@pytest.mark.usefixtures("impatient")
def test_a_starting_replica_changes_nothing_beside_other_daemons(
    empty_database_url: str, old: Path, new: Path
) -> None:
    install(empty_database_url, old)
    with a_daemon(empty_database_url):
        with pytest.raises(WrongState, match="other daemons are using it"):
            install(empty_database_url, new, "none")
        assert count(empty_database_url) == 1
        assert install(empty_database_url, new, "compatible").version == 2
        assert install(empty_database_url, new, "none").loaded == 0
    assert count(empty_database_url) == 2


@pytest.mark.usefixtures("impatient")
def test_two_builds_of_one_version_do_not_replace_each_other_in_turn(
    empty_database_url: str, old: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    shutil.copytree(old, other)
    write(other, COUNT, function("select 3"))
    install(empty_database_url, old)
    with a_daemon(empty_database_url):
        with pytest.raises(WrongState, match="different functions"):
            install(empty_database_url, other, "none")
        assert count(empty_database_url) == 1
    # If no daemon works, it reloads them, as a developer expects.
    install(empty_database_url, other, "none")
    assert count(empty_database_url) == 3


@pytest.mark.usefixtures("impatient")
def test_a_function_made_by_hand_does_not_keep_a_replica_from_starting(
    empty_database_url: str, old: Path
) -> None:
    install(empty_database_url, old)
    with Sql(empty_database_url) as sql:
        sql.execute(function("select 1", "by_hand"))
    with a_daemon(empty_database_url):
        assert install(empty_database_url, old, "none").dropped == ()
    assert install(empty_database_url, old, "none").dropped == ("function odc.by_hand()",)


@pytest.mark.usefixtures("impatient")
def test_an_incompatible_upgrade_waits_for_the_old_daemons_to_stop(
    empty_database_url: str, old: Path, new: Path
) -> None:
    write(new, "compatible_since", "2")
    install(empty_database_url, old)
    with a_daemon(empty_database_url), pytest.raises(WrongState, match="cannot use version 2"):
        install(empty_database_url, new, "compatible")
    assert count(empty_database_url) == 1
    assert install(empty_database_url, new, "compatible").version == 2


def test_a_daemon_that_is_just_ending_is_waited_for(
    empty_database_url: str, old: Path, new: Path
) -> None:
    """A killed daemon leaves its backends behind for a moment."""
    install(empty_database_url, old)

    with a_daemon(empty_database_url) as daemon, ThreadPoolExecutor(1) as aside:
        done = aside.submit(install, empty_database_url, new, "none")
        # The installer has looked for daemons at least once.
        until(
            lambda: daemon.value(
                "select exists (select from pg_stat_activity where datname = current_database() "
                "and application_name = 'odcd install' and state = 'idle' "
                "and query like '%like ''odcd%''%')"
            )
        )
        daemon.execute("set application_name = 'odc test'")
        assert done.result().version == 2


def until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("text", ["three", "", "2", "-1"])
def test_a_compatible_version_is_that_of_a_migration(old: Path, text: str) -> None:
    write(old, "compatible_since", text)
    with pytest.raises(OdcError, match="compatible_since"):
        schema.read_source(old)


def test_an_upgrade_that_fails_leaves_tables_and_functions_as_they_were(
    empty_database_url: str, old: Path, new: Path
) -> None:
    install(empty_database_url, old)
    write(new, COUNT, function("select nobody_knows()"))
    with pytest.raises(OdcError, match="does not load"):
        install(empty_database_url, new)
    with Sql(empty_database_url) as sql:
        assert sql.value("select max(version) from odc.migration") == 1
        assert sql.value("select count(*) from pg_attribute where attname = 'more'") == 0


@pytest.mark.parametrize("where", ["waits for the turn", "computes"])
def test_a_daemons_call_under_way_loses_its_connection_and_meets_no_missing_function(
    old: Path, new: Path, empty_database_url: str, where: str
) -> None:
    """The daemon continues with the old body of its function, whose helper is gone."""
    turn = "pg_advisory_xact_lock(7300196)" if where == "waits for the turn" else "pg_sleep(1)"
    write(old, "functions/thing/use_helper.sql", (
        "create or replace function odc.use_helper() returns integer\n"
        "language plpgsql as $$\n"
        f"begin perform {turn}; perform pg_sleep(0.2); return odc._helper(1); end $$;\n"
    ))  # fmt: skip
    write(old, "functions/thing/_helper.sql", (
        "create or replace function odc._helper(p integer) returns integer\n"
        "language sql as $$ select p $$;\n"
    ))  # fmt: skip
    write(new, "functions/thing/_helper.sql", (
        "create or replace function odc._helper(p text) returns integer\n"
        "language sql as $$ select 1 $$;\n"
    ))  # fmt: skip
    # Keep the install busy long enough for the call to arrive.
    write(new, "migrations/0002_second.sql", "select pg_sleep(0.5);")
    install(empty_database_url, old)
    with a_daemon(empty_database_url) as daemon, ThreadPoolExecutor(2) as aside:
        upgrade = aside.submit(install, empty_database_url, new)
        until(lambda: installs(empty_database_url))
        call = aside.submit(daemon.value, "select odc.use_helper()")
        assert upgrade.result(60).version == 2
        with pytest.raises(DatabaseDown):
            call.result(60)


def installs(dsn: str) -> bool:
    with Sql(dsn) as sql:
        return sql.value(
            "select exists (select from pg_stat_activity where datname = current_database() "
            "and application_name = 'odcd install' and query like '%pg_sleep%' "
            "and state = 'active')"
        )
