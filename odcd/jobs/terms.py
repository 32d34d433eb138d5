"""How many dependencies the jobs of one request may have together.

They are written and judged in one transaction, while everybody waits for the turn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from odcd.errors import TooLarge

MAX_TERMS = 10_000
"""Dependencies of all jobs of one request."""
CORRESPONDING_TERMS = 100
"""aftercorr counts as so many: it reads all tasks of an array."""


def add_terms(terms: int, job: Mapping[str, Any]) -> int:
    """The terms of one more job, added. Raises TooLarge."""
    if job["dependency"] is None:
        return terms
    for term in job["dependency"]["terms"]:
        terms += CORRESPONDING_TERMS if term["kind"] == "aftercorr" else 1
    if terms > MAX_TERMS:
        raise TooLarge(
            f"this request has more than {MAX_TERMS} dependencies in total, counted up to this job "
            f"(aftercorr counts as {CORRESPONDING_TERMS})",
            "Send several requests, or depend on an array as a whole.",
        )
    return terms
