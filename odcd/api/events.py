"""/v1/events and /v1/jobs/{id}/events: all changes, as server-sent events."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Any

import msgspec
from starlette.responses import Response

from odcd.api.answers import cluster as cluster_answers
from odcd.api.booking_events import SeenBookings
from odcd.api.http.context import Api, unknown_job
from odcd.api.http.routing import Call, Operation
from odcd.api.http.streaming import Streamed
from odcd.errors import BadRequest
from odcd.events import Event, EventFilter, Heartbeat, Lagged
from odcd.records.job import Identity

MEDIA_TYPE = "text/event-stream"
MAX_ID = 2**63 - 1
RETRY = b"retry: 1000\n\n"
BEAT = b": \n\n"
_PERSONAL = ("cron_", "disk_", "notification")
"""Why a notification failed may contain a mail address, or the host of a webhook."""
_RANGE = re.compile(r"\[(\d+),(\d+)\)")


class EventsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    after: Annotated[int, msgspec.Meta(ge=0, le=MAX_ID)] | None = None
    """Events after this id; 0: from the first. The header Last-Event-ID does the same, and takes
    precedence. Without either: only new events; of a job, all events."""
    follow: bool = True
    """false: end after the existing events."""


class EventRoutes:
    def __init__(self, api: Api) -> None:
        self._api = api

    def operations(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="GET",
                path="/v1/events",
                tag="events",
                serve=self.all,
                query=EventsQuery,
                media_type=MEDIA_TYPE,
                answers={200: (cluster_answers.Event,)},
                summary="Follow events; operators also see logins, and others' disks, bookings, "
                "recurring jobs and notifications",
            ),
            Operation(
                method="GET",
                path="/v1/jobs/{id}/events",
                tag="events",
                serve=self.of_job,
                query=EventsQuery,
                media_type=MEDIA_TYPE,
                answers={200: (cluster_answers.Event,)},
                summary="Follow the events of a job, an array or its tasks",
            ),
        )

    async def all(self, call: Call) -> Response:
        query = call.query(EventsQuery)
        matches = None if call.who.operator else _seen_by(call.who)
        return self._streamed(_after(call, query), query.follow, matches=matches, who=call.who)

    async def of_job(self, call: Call) -> Response:
        query = call.query(EventsQuery)
        selector = call.selector()
        if await self._api.store.jobs.get_owner(selector.job_id) is None:
            raise unknown_job(selector.job_id)
        after = _after(call, query)
        matches = _both(
            None if call.who.operator else _seen_by(call.who),
            of_tasks(selector.tasks) if selector.tasks else None,
        )
        after = 0 if after is None else after
        return self._streamed(after, query.follow, selector.job_id, matches)

    def _streamed(
        self,
        after: int | None,
        follow: bool,
        job_id: int | None = None,
        matches: EventFilter | None = None,
        who: Identity | None = None,
    ) -> Response:
        """who: leaves out the events of bookings that this user may not see."""
        events = self._api.events.stream(after, job_id=job_id, matches=matches, follow=follow)
        if who is not None and not who.operator:
            events = SeenBookings(self._api.store.bookings, who).of(events)
        return Streamed(_sse(events), media_type=MEDIA_TYPE, stopping=self._api.events.closing)


async def _sse(events: AsyncGenerator[Event | Heartbeat | Lagged]) -> AsyncGenerator[bytes]:
    yield RETRY
    async with aclosing(events):
        async for event in events:
            if isinstance(event, Event):
                yield f"id: {event.id}\nevent: {event.kind}\ndata: {event.body}\n\n".encode()
            elif isinstance(event, Lagged):
                lagged = {"id": event.last_id, "kind": "lagged", "actor": "odcd"}
                data = msgspec.json.encode(lagged).decode()
                yield f"id: {event.last_id}\nevent: lagged\ndata: {data}\n\n".encode()
            else:
                yield BEAT


def _after(call: Call, query: EventsQuery) -> int | None:
    last = call.request.headers.get("last-event-id")
    if last is None:
        return query.after
    if not (last.isascii() and last.isdecimal() and len(last) <= 19 and int(last) <= MAX_ID):
        raise BadRequest(f'Last-Event-ID "{last[:40]}" is not the id of an event')
    return int(last)


def _seen_by(who: Identity) -> EventFilter:
    """Login events are only for operators; events about disks and notifications for operators and
    the users they concern. Bookings: SeenBookings."""

    def matches(event: Event) -> bool:
        if event.kind.startswith(_PERSONAL):
            body: dict[str, Any] = msgspec.json.decode(event.body)
            return who.user in (body["actor"], (body.get("detail") or {}).get("user"))
        return not event.kind.startswith("login")

    return matches


def _both(one: EventFilter | None, other: EventFilter | None) -> EventFilter | None:
    if one is None or other is None:
        return one or other
    return lambda event: one(event) and other(event)


def of_tasks(tasks: str) -> EventFilter:
    """tasks: of a Selector, whose ranges are in ascending order and do not touch."""
    lows, highs = array("q"), array("q")
    for found in _RANGE.finditer(tasks):
        lows.append(int(found[1]))
        highs.append(int(found[2]))

    def matches(event: Event) -> bool:
        task = event.array_task_id
        if task is None:
            return False
        at = bisect_right(lows, task) - 1
        return at >= 0 and task < highs[at]

    return matches
