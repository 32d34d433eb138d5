"""`as_of`: any list, as it was at a moment of the past."""

from __future__ import annotations

from datetime import datetime

from odcd.errors import BadRequest


def as_of(given: datetime | None) -> datetime | None:
    """The moment that a query names. Raises BadRequest when it leaves open which one that is."""
    if given is not None and given.tzinfo is None:
        raise BadRequest("as_of names no time zone", "End it with Z.")
    return given
