"""Events as a client reads them."""

from __future__ import annotations

import json
import time
from typing import Any

from tests.support.database import Sql


def told(sql: Sql, after: int = 0, job_id: int | None = None) -> list[dict[str, Any]]:
    """All events after one, once they are final.

    Behind a transaction that is still open, autovacuum's for one, no event is.
    """
    deadline = time.monotonic() + 30
    while not sql.value("select coalesce(max(xid) < odc._final_below(), true) from odc.event"):
        assert time.monotonic() < deadline, "a transaction stays open"
        time.sleep(0.02)
    bodies = sql.values("select body from odc.events_after($1, 1000, $2)", after, job_id)
    return [json.loads(body) for body in bodies]
