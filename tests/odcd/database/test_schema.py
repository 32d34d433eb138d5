"""The installer: the folder is the schema, whoever installs it, and however often."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from odcd.clock import SystemClock
from odcd.database import schema
from odcd.database.schema import Installed
from odcd.errors import OdcError, SchemaTooNew
from tests.support.harness.database import Sql


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small separate sql folder."""
    target = tmp_path / "sql"
    write(target, "migrations/0001_first.sql", "create table thing (id integer primary key);")
    write(target, "functions/thing/count_things.sql", function("count_things", "select 1"))
    write(target, "functions/leader/make_partitions.sql", function("make_partitions", "select 0"))
    return target


def write(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def function(name: str, body: str, arguments: str = "", returns: str = "integer") -> str:
    return (
        f"create or replace function odc.{name}({arguments}) returns {returns}\n"
        f"language sql stable as $$ {body} $$;\n"
    )


def install(dsn: str, folder: Path | None = None) -> Installed:
    source = schema.read_source(folder) if folder else None
    return asyncio.run(schema.install(dsn, SystemClock(), source))


@pytest.mark.long
def test_an_install_makes_everything_and_the_next_one_nothing(empty_database_url: str) -> None:
    first = install(empty_database_url)
    assert first.version >= 1
    assert first.migrations[0] == "0001_queue.sql"
    second = install(empty_database_url)
    assert (second.migrations, second.loaded, second.dropped) == ((), 0, ())


@pytest.mark.long
def test_two_installers_at_once_leave_one_schema(empty_database_url: str) -> None:
    async def both() -> list[Installed]:
        return await asyncio.gather(
            *(schema.install(empty_database_url, SystemClock()) for _ in range(4))
        )

    done = asyncio.run(both())
    assert sorted(len(d.migrations) for d in done)[:3] == [0, 0, 0]
    with Sql(empty_database_url) as sql:
        assert sql.value("select count(*) from odc.migration") == done[0].version


def test_a_database_of_a_newer_version_is_refused(empty_database_url: str, folder: Path) -> None:
    install(empty_database_url, folder)
    write(folder, "migrations/0002_second.sql", "alter table thing add column more text;")
    install(empty_database_url, folder)
    (folder / "migrations/0002_second.sql").unlink()
    with pytest.raises(SchemaTooNew) as caught:
        install(empty_database_url, folder)
    assert "version 2" in caught.value.message


def test_an_edited_migration_is_refused(empty_database_url: str, folder: Path) -> None:
    install(empty_database_url, folder)
    write(folder, "migrations/0001_first.sql", "create table thing (id bigint primary key);")
    with pytest.raises(OdcError, match="was edited"):
        install(empty_database_url, folder)


def test_a_failing_migration_leaves_nothing_of_itself(
    empty_database_url: str, folder: Path
) -> None:
    install(empty_database_url, folder)
    write(folder, "migrations/0002_bad.sql", "create table half (); select 1 / 0;")
    with pytest.raises(OdcError, match=r"0002_bad\.sql"):
        install(empty_database_url, folder)
    with Sql(empty_database_url) as sql:
        assert sql.value("select to_regclass('odc.half')") is None
        assert sql.value("select max(version) from odc.migration") == 1


def test_a_migration_may_run_outside_a_transaction(empty_database_url: str, folder: Path) -> None:
    write(
        folder,
        "migrations/0002_index.sql",
        "-- transaction: none\n"
        "create index concurrently if not exists thing_id on odc.thing (id);\n"
        "alter table odc.thing add column if not exists note text;\n",
    )
    assert install(empty_database_url, folder).migrations == ("0001_first.sql", "0002_index.sql")
    with Sql(empty_database_url) as sql:
        assert sql.value("select to_regclass('odc.thing_id') is not null")


def test_a_function_without_a_file_is_dropped(empty_database_url: str, folder: Path) -> None:
    write(folder, "functions/thing/old.sql", function("old", "select 1"))
    install(empty_database_url, folder)
    (folder / "functions/thing/old.sql").unlink()
    assert install(empty_database_url, folder).dropped == ("function odc.old()",)
    with Sql(empty_database_url) as sql:
        assert sql.value("select to_regproc('odc.old')") is None
        assert sql.value("select odc.count_things()") == 1


def test_a_function_made_by_hand_is_dropped_at_the_next_install(
    empty_database_url: str, folder: Path
) -> None:
    install(empty_database_url, folder)
    with Sql(empty_database_url) as sql:
        sql.execute(function("by_hand", "select 1"))
    assert install(empty_database_url, folder).dropped == ("function odc.by_hand()",)


def test_a_changed_signature_replaces_the_old_function(
    empty_database_url: str, folder: Path
) -> None:
    name = "functions/thing/count_things.sql"
    user = (
        "create or replace function odc.a_user() returns bigint language sql stable\n"
        "begin atomic select odc.count_things(); end;\n"
    )
    install(empty_database_url, folder)
    write(folder, "functions/thing/a_user.sql", user)
    for text in (
        function("count_things", "select 2::bigint", returns="bigint"),
        function("count_things", "select 3", arguments="p_more integer default 0"),
        function("count_things", "select 4", arguments="p_other integer default 0"),
    ):
        write(folder, name, text)
        install(empty_database_url, folder)
        with Sql(empty_database_url) as sql:
            found = sql.values(
                "select oid::regprocedure::text from pg_proc where proname = 'count_things'"
            )
            assert len(found) == 1
            assert sql.value("select odc.a_user() = odc.count_things()")


def test_a_new_optional_argument_makes_no_call_ambiguous(
    empty_database_url: str, folder: Path
) -> None:
    """Before: the caller, loaded while both versions were there, stopped the upgrade."""
    name, caller = "functions/thing/count_things.sql", "functions/thing/later.sql"
    write(folder, name, function("count_things", "select 1", "p_least integer"))
    write(folder, caller, function("later", "select odc.count_things(5)"))
    install(empty_database_url, folder)
    arguments = "p_least integer, p_most integer default 2"
    write(folder, name, function("count_things", "select p_least + p_most", arguments))
    install(empty_database_url, folder)
    with Sql(empty_database_url) as sql:
        assert sql.value("select odc.later()") == 7


def test_functions_load_in_the_order_of_their_dependencies(
    empty_database_url: str, folder: Path
) -> None:
    write(
        folder,
        "functions/a/a.sql",
        "create or replace function odc.a() returns integer language sql stable\n"
        "begin atomic select odc.b() + (select max(n) from odc.z_view); end;\n",
    )
    write(
        folder,
        "functions/b/b.sql",
        "create or replace function odc.b() returns integer language sql stable\n"
        "begin atomic select odc.c(); end;\n",
    )
    write(folder, "functions/c/c.sql", function("c", "select 40"))
    write(
        folder, "views/z_view.sql", "create or replace view odc.z_view as select odc.c() / 20 as n;"
    )
    install(empty_database_url, folder)
    with Sql(empty_database_url) as sql:
        assert sql.value("select odc.a()") == 42


def test_functions_that_name_each_other_load(empty_database_url: str, folder: Path) -> None:
    for this, other in (("ping", "pong"), ("pong", "ping")):
        body = f"select case when p_n = 0 then 0 else odc.{other}(p_n - 1) end"
        write(folder, f"functions/x/{this}.sql", function(this, body, "p_n integer"))
    install(empty_database_url, folder)
    with Sql(empty_database_url) as sql:
        assert sql.value("select odc.ping(5)") == 0


def test_a_file_that_does_not_load_is_named_and_changes_nothing(
    empty_database_url: str, folder: Path
) -> None:
    install(empty_database_url, folder)
    write(folder, "functions/thing/count_things.sql", function("count_things", "select 2"))
    write(folder, "functions/thing/wrong.sql", function("wrong", "select nobody_knows()"))
    with pytest.raises(OdcError, match=r"functions/thing/wrong\.sql"):
        install(empty_database_url, folder)
    with Sql(empty_database_url) as sql:
        assert sql.value("select odc.count_things()") == 1


def test_a_view_with_other_columns_and_a_view_without_a_file(
    empty_database_url: str, folder: Path
) -> None:
    write(folder, "views/v.sql", "create or replace view odc.v as select 1 as a, 2 as b;")
    write(folder, "views/w.sql", "create or replace view odc.w as select a from odc.v;")
    write(folder, "views/gone.sql", "create or replace view odc.gone as select 1 as a;")
    install(empty_database_url, folder)
    write(folder, "views/v.sql", "create or replace view odc.v as select 3 as a;")
    (folder / "views/gone.sql").unlink()
    assert install(empty_database_url, folder).dropped == ("view odc.gone",)
    with Sql(empty_database_url) as sql:
        assert sql.value("select a from odc.w") == 3


@pytest.mark.parametrize(
    "names", [["0002_gap.sql"], ["0001_a.sql", "0001_b.sql"], ["0001-dash.sql"], ["1_short.sql"]]
)
def test_misnumbered_migrations_are_refused(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        write(tmp_path, f"migrations/{name}", "select 1;")
    with pytest.raises(OdcError):
        schema.read_source(tmp_path)


@pytest.mark.long
def test_a_version_of_the_real_folder_can_grow(empty_database_url: str, tmp_path: Path) -> None:
    """An upgrade: a table that functions and rows use, and its past, get a column."""
    target = tmp_path / "sql"
    shutil.copytree(schema.sql_folder(), target)
    install(empty_database_url, target)
    newest = schema.read_source(target).version + 1
    write(
        target,
        f"migrations/{newest:04}_more.sql",
        "alter table node add column rack text; alter table node_past add column rack text;",
    )
    done = install(empty_database_url, target)
    assert done.migrations == (f"{newest:04}_more.sql",)
    assert done.dropped == ()
