"""A first-come, first-served queue with one protected job: easy to predict by hand."""

from __future__ import annotations

import pytest

from tests.support.builders.jobs import Queue


@pytest.fixture(autouse=True)
def _first_come(queue: Queue) -> None:
    queue.sql.execute("update odc.partition set policy = 'fifo'")
