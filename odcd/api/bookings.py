"""/v1/bookings: nodes set aside for future windows."""

from __future__ import annotations

import asyncio
import hashlib
import pwd
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET
from msgspec import UnsetType as Unset
from starlette.responses import Response

from odcd.api.accounts import key_of
from odcd.api.answers.bookings import Booking, BookingList
from odcd.api.http.context import Api
from odcd.api.http.routing import JSON, Call, Operation
from odcd.errors import BadRequest
from odcd.records.fields import Comment, Count, Name
from odcd.slurm.times import parse_moment, parse_span, zone_of

Moment = Annotated[str, msgspec.Meta(min_length=1, max_length=100)]
Repeats = Literal["none", "daily", "weekly", "weekdays"]
Names = Annotated[list[Name], msgspec.Meta(max_length=10_000)]


class _Form(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class BookingTerms(_Form, frozen=True, kw_only=True):
    """Moments are ISO 8601, or in the format of sbatch --begin: now+2h, 18:00, tomorrow 9am."""

    ends_at: Moment | Unset = UNSET
    duration_s: Annotated[int, msgspec.Meta(ge=1)] | Unset = UNSET
    """Instead of ends_at."""
    duration: str | Unset = UNSET
    """Instead of duration_s, in sbatch's format: 30, 2:00:00, 1-12."""
    repeats: Repeats | Unset = UNSET
    """At the same time of day in zone."""
    zone: Annotated[str, msgspec.Meta(max_length=100)] | Unset | None = UNSET
    """The time zone of a booking that repeats, as Europe/Berlin; null: UTC. A time that it skips in
    spring is an hour later that day; a time that it has twice in autumn is the second one."""
    until: Moment | Unset | None = UNSET
    """No repetition begins after it; null: it repeats forever."""
    time_zone: str | None = None
    """The zone of moments that have none: a name, or "" for the daemon's; null: UTC."""
    node_list: Names | Unset = UNSET
    gpu_type: Name | Unset | None = UNSET
    partition: Name | Unset | None = UNSET
    node_count: Count | Unset | None = UNSET
    """The number of nodes, of the type, of the partition, or of all nodes; null: every one."""
    all_nodes: bool | Unset = UNSET
    users: Names | Unset = UNSET
    accounts: Names | Unset = UNSET
    """Users of these accounts and of the accounts below them."""
    comment: Comment | Unset | None = UNSET
    ignore_running: bool | Unset = UNSET
    """For maintenance: book even if running jobs extend into the window. The jobs continue."""


class MakeBooking(BookingTerms, frozen=True, kw_only=True):
    name: Name
    starts_at: Moment
    kind: Literal["use", "maintenance"] = "use"


class EditBooking(BookingTerms, frozen=True, kw_only=True):
    """Only the given fields change. node_list and all_nodes replace the selection of nodes."""

    name: Name | Unset = UNSET
    starts_at: Moment | Unset = UNSET


class BookingQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    all: bool = False
    """Include bookings that have ended."""


class BookingRoutes:
    def __init__(self, api: Api) -> None:
        self._api = api
        self._make = msgspec.json.Decoder(MakeBooking)
        self._edit = msgspec.json.Decoder(EditBooking)

    def operations(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="GET",
                path="/v1/bookings",
                tag="bookings",
                serve=self.list,
                query=BookingQuery,
                answers={200: (BookingList,)},
                summary="List bookings: all for operators, their own for other users",
            ),
            Operation(
                method="POST",
                path="/v1/bookings",
                tag="bookings",
                serve=self.make,
                body=MakeBooking,
                makes=True,
                answers={201: (Booking,)},
                summary="Book nodes (operators)",
            ),
            Operation(
                method="GET",
                path="/v1/bookings/{booking}",
                tag="bookings",
                serve=self.show,
                answers={200: (Booking,)},
                summary="Show a booking",
            ),
            Operation(
                method="PATCH",
                path="/v1/bookings/{booking}",
                tag="bookings",
                serve=self.edit,
                body=EditBooking,
                answers={200: (Booking,)},
                summary="Change a booking (operators)",
            ),
            Operation(
                method="DELETE",
                path="/v1/bookings/{booking}",
                tag="bookings",
                serve=self.delete,
                answers={200: (Booking,)},
                summary="Delete a booking (operators); its pending jobs are held",
            ),
        )

    async def list(self, call: Call) -> Response:
        query = call.query(BookingQuery)
        now = self._api.clock.now()
        bookings = await self._api.store.bookings.list(call.who, now, ended=query.all)
        return Response(f'{{"bookings":{bookings}}}', media_type=JSON)

    async def show(self, call: Call) -> Response:
        now = self._api.clock.now()
        booking = await self._api.store.bookings.get(call.who, call.part("booking"), now)
        return Response(booking, media_type=JSON)

    async def make(self, call: Call) -> Response:
        form = await call.body(self._make)
        now = self._api.clock.now()
        ask = await _request_of(form, now)
        # The digest has moments as written: now+2h means another time when the request is repeated.
        digest = hashlib.sha256(b"booking:" + msgspec.json.encode(form)).hexdigest()
        booking = await self._api.store.bookings.create(call.who, ask, key_of(call), digest, now)
        self._api.wake()
        return Response(booking, 201, media_type=JSON)

    async def edit(self, call: Call) -> Response:
        form = await call.body(self._edit)
        now = self._api.clock.now()
        ask = await _request_of(form, now)
        booking = await self._api.store.bookings.update(call.who, call.part("booking"), ask, now)
        self._api.wake()
        return Response(booking, media_type=JSON)

    async def delete(self, call: Call) -> Response:
        now = self._api.clock.now()
        booking = await self._api.store.bookings.delete(call.who, call.part("booking"), now)
        self._api.wake()
        return Response(booking, media_type=JSON)


async def _request_of(form: MakeBooking | EditBooking, now: datetime) -> dict[str, Any]:
    """The request in the form that odc.create_booking takes. Raises BadRequest."""
    ask: dict[str, Any] = {
        name: value
        for name in form.__struct_fields__
        if name != "time_zone" and (value := getattr(form, name)) is not UNSET
    }
    here = now if form.time_zone is None else now.astimezone(zone_of(form.time_zone))
    for name in ("starts_at", "ends_at", "until"):
        if ask.get(name) is not None:
            ask[name] = parse_moment(ask[name], here).isoformat()
    duration = ask.pop("duration", None)
    if duration is not None:
        if "duration_s" in ask:
            raise BadRequest("duration and duration_s mean the same", "Use only one of them.")
        ask["duration_s"] = parse_span(duration, "duration")
    if "users" in ask:
        # The user database may be slow (LDAP).
        ask["users"] = await asyncio.to_thread(_known, ask["users"])
    return ask


def _known(names: list[str]) -> list[dict[str, Any]]:
    """The users, with their uid if this machine knows them."""
    return [{"name": name, "uid": _uid(name)} for name in names]


def _uid(name: str) -> int | None:
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return None
