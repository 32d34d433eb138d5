"""A queue whose events are committed, so that they become final."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.sql.cluster.measure.counted import Counted
from tests.support.harness.database import Sql


@pytest.fixture
def counted(database_url: str) -> Iterator[Counted]:
    with Sql(database_url) as sql, Sql(database_url) as late:
        counted = Counted(sql, late)
        yield counted
        assert counted.queue.contradictions() == []
