"""One theatre for all tests here: a separate database, with connections that stay warm."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interleave.theatre import Theatre
from tests.support.harness.database import TestServer


@pytest.fixture(scope="package")
def _theatre(postgres_server: TestServer) -> Iterator[Theatre]:
    dsn = postgres_server.clone()
    theatre = Theatre(dsn)
    yield theatre
    theatre.close()
    postgres_server.drop(dsn)


@pytest.fixture
def theatre(_theatre: Theatre) -> Theatre:
    _theatre.clear()
    return _theatre
