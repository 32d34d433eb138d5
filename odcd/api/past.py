"""`as_of`: show any list as it was at a past moment."""

from __future__ import annotations

from datetime import datetime

from odcd.errors import BadRequest


def as_of(given: datetime | None) -> datetime | None:
    """The moment given in a query. Raises BadRequest when it has no time zone."""
    if given is not None and given.tzinfo is None:
        raise BadRequest("as_of has no time zone", "End it with Z.")
    return given
