"""Which events of bookings a user may see: those of the bookings that the user may see."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection
from contextlib import aclosing
from typing import Any, Protocol

import msgspec

from odcd.events import Event, Heartbeat, Lagged
from odcd.records.job import Identity

PREFIX = "booking_"


class Bookings(Protocol):
    async def seen_among(self, who: Identity, ids: Collection[int]) -> set[int]: ...


class SeenBookings:
    """For one stream of one user. The database is asked once about each booking, and again when it
    was edited, so that a stream of many old events costs few queries."""

    def __init__(self, bookings: Bookings, who: Identity) -> None:
        self._bookings = bookings
        self._who = who
        self._known: dict[int, bool] = {}

    async def of(
        self, events: AsyncGenerator[Event | Heartbeat | Lagged]
    ) -> AsyncGenerator[Event | Heartbeat | Lagged]:
        async with aclosing(events):
            async for event in events:
                if (
                    not isinstance(event, Event)
                    or not event.kind.startswith(PREFIX)
                    or await self._sees(event)
                ):
                    yield event

    async def _sees(self, event: Event) -> bool:
        detail: dict[str, Any] = msgspec.json.decode(event.body).get("detail") or {}
        booking_id = detail.get("booking_id")
        if not isinstance(booking_id, int):
            return False
        if booking_id not in self._known or event.kind == "booking_edited":
            seen = await self._bookings.seen_among(self._who, [booking_id])
            self._known[booking_id] = booking_id in seen
        return self._known[booking_id]
