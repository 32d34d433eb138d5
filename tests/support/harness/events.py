"""Events as a client reads them."""

from __future__ import annotations

import json
import time
from typing import Any

from tests.support.harness.database import Sql


def read_events(
    sql: Sql, after: int = 0, job_id: int | None = None, limit: int = 1000
) -> list[dict[str, Any]]:
    """The events after this one, once all are final.

    No event is final while an earlier transaction is open, for example one of autovacuum. One
    statement sees the same open transactions throughout; a later one may see others.
    """
    deadline = time.monotonic() + 30
    while True:
        row = sql.row(
            "select exists (select from odc.event where xid >= odc._final_below()) as withheld, "
            "array(select body from odc.events_after($1, $2, $3)) as bodies",
            after, limit, job_id,
        )  # fmt: skip
        if not row["withheld"]:
            return [json.loads(body) for body in row["bodies"]]
        assert time.monotonic() < deadline, "a transaction stays open"
        time.sleep(0.02)
