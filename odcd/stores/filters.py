"""Job filters, in the form that the SQL functions that list and change jobs take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from odcd.records.job import Selector

# All optional, all ANDed: ids (Selector dicts), user, name[], partition[], account[], qos[],
# state[], job_ids[]; for list_jobs also text. The API rejects unknown keys first.
Filters = Mapping[str, object]


def plain(filters: Filters) -> dict[str, Any]:
    plain: dict[str, Any] = dict(filters)
    if "ids" in plain:
        plain["ids"] = [
            {"job_id": s.job_id, "tasks": s.tasks} if isinstance(s, Selector) else s
            for s in plain["ids"]
        ]
    return plain
