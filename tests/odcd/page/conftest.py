"""One database for all tests of the page, as those of the API have it; and a server to kill."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from odcd.clock import SystemClock
from odcd.database import schema
from odcd.home.postgres import EmbeddedPostgres
from tests.odcd.api.conftest import _api_database, database_url
from tests.support.harness.database import admit_root, make_home, remove_home

__all__ = ["_api_database", "database_url"]


@pytest.fixture
def own_server() -> Iterator[EmbeddedPostgres]:
    """With the schema; whoever kills it starts it again by restart()."""
    home = make_home()
    server = EmbeddedPostgres(home, durable=False)
    restart(server)
    with ThreadPoolExecutor(1) as aside:
        aside.submit(lambda: asyncio.run(schema.install(server.dsn, SystemClock()))).result()
    yield server
    remove_home(home)


def restart(server: EmbeddedPostgres) -> None:
    """In a thread of its own: Playwright's loop leaves the tests' no other."""
    with ThreadPoolExecutor(1) as aside:
        aside.submit(server.start).result()
        aside.submit(admit_root, server).result()
