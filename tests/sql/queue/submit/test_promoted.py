"""Submissions to a PostgreSQL that was promoted or restored, before a leader has prepared it."""

from __future__ import annotations

import pytest

from odcd.errors import DatabaseBusy
from tests.support.builders.jobs import NOW, Queue


def test_no_id_is_given_before_the_leader_has_skipped_those_that_were_used(queue: Queue) -> None:
    queue.sql.execute(
        "update odc.server set system_id = l.system_id, timeline = l.timeline - 1, led_at = $1 "
        "from odc._find_lineage() as l",
        NOW,
    )
    with pytest.raises(DatabaseBusy, match="not ready yet after PostgreSQL was promoted"):
        queue.submit()
    last = queue.sql.value("select last_value from odc.job_id_seq")
    queue.sql.value("select odc.take_term(t.term, t.beat, 'x', 'x', $1) from odc.term as t", NOW)
    assert queue.submit() > last + 1000
