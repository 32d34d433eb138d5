from __future__ import annotations

import pytest

from tests.sql.limits.booking.desk import Desk
from tests.support.builders.jobs import Queue, a_cluster


@pytest.fixture
def desk(queue: Queue) -> Desk:
    """A cluster of four h100 and two l4 nodes; alice has a job that has ended."""
    a_cluster(queue.sql, h100=4, l4=2)
    return Desk(queue)
