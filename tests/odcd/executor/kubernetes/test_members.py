"""The executor's memory of members, and how long it lasts."""

from __future__ import annotations

from datetime import UTC, datetime

from odcd.clock import SystemClock
from odcd.executor.kubernetes.ledger import Ledger
from odcd.executor.kubernetes.members import Members
from odcd.records.dispatch import Fact

KEY = (7, 1, 0)


def test_an_end_is_remembered_until_an_order_read_before_it_must_have_come() -> None:
    """The planner had read the attempt as not started; it started, ended and was removed before the
    order arrived. Created again, its script would have run twice."""
    members = Members(SystemClock(), Ledger())
    members.end(
        KEY,
        Fact(job_id=7, attempt=1, rank=0, kind="exited", at=datetime.now(UTC), exit_code=0),
    )
    members.trim({KEY[:2]})
    members.trim(set())
    assert KEY in members.over
    members.trim(set())
    assert KEY not in members.over
