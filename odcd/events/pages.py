"""Read events from the database in pages. An event that cannot be read is skipped: all clients read
the same events, so it would stop every stream."""

from __future__ import annotations

import logging
from typing import Protocol

import msgspec

from odcd.events.event import Event, parse_event
from odcd.isolation import explain, is_at_fault

log = logging.getLogger(__name__)

PAGE = 1_000


class EventPages(Protocol):
    async def list(
        self, after: int, limit: int, job_id: int | None = None
    ) -> list[tuple[int, str]]: ...


async def read_page(
    store: EventPages, after: int, job_id: int | None = None
) -> tuple[list[Event], int, bool]:
    """The next events after this id, the id after which to continue, and whether there are more."""
    limit, rows = PAGE, list[tuple[int, str]]()
    while True:
        try:
            rows = await store.list(after, limit, job_id)
            break
        except Exception as error:
            if not is_at_fault(error):
                raise
            if limit > 1:
                # The page ends before the event at fault.
                limit //= 2
                continue
            after = await _skip(store, after, job_id, error)
            limit = PAGE
    events: list[Event] = []
    for event_id, body in rows:
        try:
            events.append(parse_event(event_id, body))
        except (ValueError, msgspec.MsgspecError) as error:
            log.error("events.skipped", extra={"event_id": event_id, "why": explain(error)})
    return events, rows[-1][0] if rows else after, len(rows) == limit


async def _skip(store: EventPages, after: int, job_id: int | None, error: Exception) -> int:
    """The id of the event that cannot be read, if events after it can. Raises its error
    otherwise."""
    try:
        await store.list(after + 1, 1, job_id)
    except Exception as again:
        raise error from again
    log.error("events.skipped", extra={"event_id": after + 1, "why": explain(error)})
    return after + 1
