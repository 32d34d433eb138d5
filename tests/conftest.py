"""Fixtures for all tests: PostgreSQL is always real."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support.harness.daemon import Odc, an_odc
from tests.support.harness.database import (
    Sql,
    TestServer,
    make_home,
    remove_home,
    shared_seed,
    shared_server,
    sow,
)
from tests.support.harness.workers import TRIED_AGAIN, ByFolder

# A run in the background of a shell without job control ignores SIGINT and SIGQUIT, one of nohup
# SIGHUP, and so would every child.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


# The same examples in each run, and other ones each time with ODC_HUNT=1; a machine that does much
# else is no fault of what is tested, so no example has a deadline (there is one of 200 ms else).
settings.register_profile(
    "odc",
    deadline=None,
    derandomize=not os.environ.get("ODC_HUNT"),
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("odc")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByFolder | None:
    return ByFolder(config, log) if config.getvalue("dist") == "loadgroup" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("max_suite_reruns", None):
        for item in items:
            if item.nodeid.startswith(TRIED_AGAIN):
                item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.fixture(scope="session")
def postgres_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestServer]:
    """One PostgreSQL for the whole run, shared by its workers; fsync is off."""
    with shared_server(_run_folder(tmp_path_factory)) as server:
        yield server


def _run_folder(factory: pytest.TempPathFactory) -> Path:
    folder = factory.getbasetemp()
    return folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder


@pytest.fixture(scope="session")
def _worker_sql(postgres_server: TestServer) -> Iterator[Sql]:
    dsn = postgres_server.clone()
    with Sql(dsn) as sql:
        yield sql
    postgres_server.drop(dsn)


@pytest.fixture
def sql(_worker_sql: Sql) -> Iterator[Sql]:
    """A session in a transaction that is rolled back: fast, one session, no NOTIFY."""
    _worker_sql.begin()
    yield _worker_sql
    _worker_sql.rollback()


@pytest.fixture
def database_url(postgres_server: TestServer) -> Iterator[str]:
    """A separate database with the schema, for tests with several sessions or NOTIFY."""
    dsn = postgres_server.clone()
    yield dsn
    postgres_server.drop(dsn)


@pytest.fixture
def empty_database_url(postgres_server: TestServer) -> Iterator[str]:
    """A separate database without the schema."""
    dsn = postgres_server.empty()
    yield dsn
    postgres_server.drop(dsn)


@pytest.fixture
def odc_home() -> Iterator[Path]:
    """A new home folder that odcd's account can enter; its processes are stopped at the end."""
    home = make_home()
    yield home
    remove_home(home)


@pytest.fixture(scope="session")
def seed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home to copy, with a database that has the schema."""
    with shared_seed(_run_folder(tmp_path_factory)) as home:
        yield home


@pytest.fixture
def odc(odc_home: Path, seed: Path) -> Iterator[Odc]:
    """A whole odc, not yet started, with a folder for its jobs; nothing of it may be left at the
    end."""
    sow(seed, odc_home / "home")
    with an_odc(odc_home / "home", odc_home / "work") as found:
        yield found
