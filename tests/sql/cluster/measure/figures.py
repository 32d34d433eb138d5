"""The answers of measuring functions, for lookups."""

from __future__ import annotations

from collections.abc import Mapping

from tests.support.builders.jobs import Queue


def measured(queue: Queue, name: str) -> dict[tuple[str, ...], float]:
    """The samples by name and label values."""
    rows = queue.sql.rows(f"select * from odc.{name}($1)", queue.now)
    found = {(row["metric"], *row["labels"]): row["value"] for row in rows}
    assert len(found) == len(rows), "a series is returned once"
    return found


def of(found: Mapping[tuple[str, ...], float], metric: str) -> dict[object, float]:
    """The values of one metric that are not 0, by their labels."""
    return {
        key[1] if len(key) == 2 else key[1:]: value
        for key, value in found.items()
        if key[0] == metric and value
    }
