"""How much an array will add to the database while its tasks start.

Each pass that starts tasks of an array changes the row of those that wait, and the database keeps
the old row with all their ranges. So an array of 10,000 separate tasks can add over a gigabyte.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

RANGE_BYTES = 16
"""Of one range in one old row; half as many on average, but a row can also change at an end."""
FEW_RANGES = 100
"""The old rows of such an array are hardly larger than the rows of its tasks."""


def past_bytes(job: Mapping[str, Any]) -> int:
    """job: as odc.submit_jobs takes it."""
    array = job["array"]
    if array is None:
        return 0
    ranges: int = array["tasks"].count("[")
    return ranges * array["count"] * RANGE_BYTES if ranges > FEW_RANGES else 0
