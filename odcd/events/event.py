"""An event as clients get it, and the place of one client in the events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec


class Event(NamedTuple):
    """body: the JSON text that the API sends."""

    id: int
    kind: str
    job_id: int | None
    array_job_id: int | None
    array_task_id: int | None
    body: str


class Heartbeat:
    """Nothing happened for a while, or the database could not be read."""


class Lagged(NamedTuple):
    """The client was too slow: it must reconnect and continue after this event."""

    last_id: int


EventFilter = Callable[[Event], bool]


class _Body(msgspec.Struct):
    kind: str
    job_id: int | None = None
    array_job_id: int | None = None
    array_task_id: int | None = None


_decode = msgspec.json.Decoder(_Body).decode


@dataclass(slots=True)
class Reader:
    """One client's place in the events."""

    job_id: int | None
    matches: EventFilter | None
    last_id: int
    """The last event that was read for it."""
    published: int = 0
    """How many of the published events were read for it."""
    seen: set[int] = field(default_factory=set[int])
    """Events that the database returned, and that memory may return again."""

    def wants(self, event: Event) -> bool:
        """event: of this reader's job."""
        return self.matches is None or self.matches(event)

    def wants_live(self, event: Event) -> bool:
        """event: of any job."""
        return (
            event.id not in self.seen
            and (self.job_id is None or self.job_id in (event.job_id, event.array_job_id))
            and self.wants(event)
        )


def parse_event(event_id: int, body: str) -> Event:
    fields = _decode(body)
    return Event(
        event_id, fields.kind, fields.job_id, fields.array_job_id, fields.array_task_id, body
    )
