"""A queue whose books are checked after every test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.builders.jobs import Queue, a_cluster
from tests.support.harness.database import Sql


@pytest.fixture
def queue(sql: Sql) -> Iterator[Queue]:
    """Two 8-GPU nodes; rolled back after the test."""
    a_cluster(sql, h100=2)
    queue = Queue(sql)
    yield queue
    assert queue.contradictions() == []
