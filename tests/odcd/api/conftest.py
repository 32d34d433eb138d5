"""One database for all tests of the API, emptied before each test, because a clone for each takes
far longer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.harness.database import Sql, TestServer, make_home, remove_home
from tests.support.harness.warm import cool

SEEDED = (
    "term", "gpu_type", "partition", "account", "qos", "policy", "priority_weight",
    "priority_setting", "account_setting", "gpu_meter", "migration", "install", "past_since",
    "facts", "notify_state",
)  # fmt: skip


@pytest.fixture(scope="session")
def _api_database(postgres_server: TestServer) -> Iterator[Sql]:
    dsn = postgres_server.clone()
    with Sql(dsn) as sql:
        sql.execute("create schema seed")
        for name in SEEDED:
            sql.execute(f"create table seed.{name} as table odc.{name}")
        yield sql
    cool()
    postgres_server.drop(dsn)


@pytest.fixture
def database_url(_api_database: Sql) -> str:
    """A database with the schema and no rows."""
    emptied = _api_database.values(
        "select format('delete from %s', c.oid::regclass) from pg_class as c "
        "where c.relnamespace = 'odc'::regnamespace and c.relkind in ('r', 'p') "
        "and not c.relispartition and c.relname <> all ($1) "
        "union all "
        "select format('select setval(%L, 1, false)', c.oid::regclass) from pg_class as c "
        "where c.relnamespace = 'odc'::regnamespace and c.relkind = 'S' "
        "and replace(c.relname, '_id_seq', '') <> all ($1)",
        list(SEEDED),
    )
    # Without foreign keys and the trigger that protects ended jobs, the order does not matter.
    _api_database.execute(";".join(["set session_replication_role = replica", *emptied]))
    for name in SEEDED:
        _api_database.execute(
            f"delete from odc.{name}; "
            f"insert into odc.{name} overriding system value select * from seed.{name}"
        )
    return _api_database.dsn


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user can enter."""
    home = make_home()
    yield home
    remove_home(home)
