"""A theatre per test: a database of its own, with connections that stay warm."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.interleave.theatre import Theatre


@pytest.fixture
def theatre(database_url: str) -> Iterator[Theatre]:
    theatre = Theatre(database_url)
    yield theatre
    theatre.close()
