"""Serve the table of operations: identify, decode, answer, count. All errors end here."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter
from typing import Any, Literal, Protocol, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from odcd.api.http.audited import Audited
from odcd.api.http.bodies import MAX_VALUES, decode
from odcd.api.http.credentials import Credentials
from odcd.api.http.problems import malformed, problem_of, unexpected
from odcd.api.http.streaming import ClientGone, Streamed, send_in_pieces
from odcd.api.http.times import check_moments
from odcd.api.http.validation import WRONG, misfit
from odcd.clock import TURN_S, Turns
from odcd.database.slots import ask_as
from odcd.errors import BadRequest, NotAuthenticated, OdcError, TooLarge, TooManyRequests
from odcd.fairness.bodies import Receipt
from odcd.fairness.limits import Fairness
from odcd.records.fields import PRINTABLE
from odcd.records.job import MAX_SCRIPT_BYTES, Identity, Selector
from odcd.slurm.lists import parse_selector

MAX_BODY_BYTES = 8 * 1024 * 1024 + MAX_SCRIPT_BYTES
JSON = "application/json"
_PRINTABLE = re.compile(PRINTABLE)

T = TypeVar("T")
Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]


class NoQuery(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """For operations without query parameters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One method of one path: the function that serves it, and its entry in /openapi.json.

    query and body are the structs they decode to. answers has, by status, the structs of JSON
    answers (if several, any of them); none if the answer is not JSON.
    public: needs no identity; anyone who reaches the daemon gets an answer.
    """

    method: Method
    path: str
    summary: str
    serve: Callable[[Call], Awaitable[Response]]
    tag: str
    query: type[msgspec.Struct] = NoQuery
    body: type[msgspec.Struct] | None = None
    raw: str | None = None
    """The media type of a body that is not JSON."""
    answers: Mapping[int, tuple[type[msgspec.Struct], ...]] = field(
        default_factory=lambda: {200: ()}
    )
    media_type: str = JSON
    makes: bool = False
    """Whether it creates something: an Idempotency-Key then prevents duplicates."""
    public: bool = False


class Identifies(Protocol):
    async def identify(self, scope: Mapping[str, Any]) -> Identity: ...


class Counts(Protocol):
    def answered(self, method: str, route: str, code: int, seconds: float) -> None: ...

    def limited(self, limit: str) -> None: ...


class Call:
    """A request and its caller."""

    __slots__ = ("_receipt", "_who", "request")

    def __init__(
        self, request: Request, who: Identity | None, receipt: Receipt | None = None
    ) -> None:
        """receipt: counts a body that arrives in pieces; None: the body is small."""
        self.request = request
        self._who = who
        self._receipt = receipt

    @property
    def who(self) -> Identity:
        if self._who is None:
            raise NotAuthenticated("this request needs an identity")
        return self._who

    @property
    def receive(self) -> Receive:
        return self.request.receive

    def part(self, name: str) -> str:
        """A parameter in the path."""
        part = self.request.path_params[name]
        if not _PRINTABLE.match(part):
            raise BadRequest(f"the path has characters that cannot be shown: {part[:60]!a}", WRONG)
        return part

    def selector(self) -> Selector:
        return parse_selector(self.part("id"))

    def query(self, form: type[T]) -> T:
        """Raises BadRequest: a parameter is unknown, given twice, or does not fit."""
        given: dict[str, str] = {}
        for name, value in self.request.query_params.multi_items():
            if name in given:
                raise BadRequest(
                    f'query: "{name}" is given twice', "Separate several values with commas."
                )
            if "\0" in value:
                raise BadRequest(f'query: "{name}" contains a NUL byte', "Leave it out.")
            given[name] = value
        try:
            query = msgspec.convert(given, form, strict=False)
        except msgspec.ValidationError as error:
            fits = partial(msgspec.convert, type=form, strict=False)
            raise misfit(error, given, form, fits) or malformed(error, "query") from None
        check_moments(query)
        return query

    async def body(
        self, decoder: msgspec.json.Decoder[T], *, empty: bytes = b"",
        max_bytes: int = MAX_BODY_BYTES, max_values: int = MAX_VALUES,
    ) -> T:  # fmt: skip
        """empty: the value of a missing body. Raises BadRequest, TooLarge, TooManyRequests,
        DaemonBusy."""
        return decode(await self._read(max_bytes) or empty, decoder, max_values)

    async def raw(self, max_bytes: int) -> bytes:
        """A body that is not JSON, of at most this many bytes. Raises TooLarge, TooManyRequests,
        DaemonBusy."""
        return await self._read(max_bytes)

    async def _read(self, max_bytes: int) -> bytes:
        declared = self.request.headers.get("content-length", "0")
        expected = int(declared) if declared.isdecimal() else 0
        if expected > max_bytes:
            raise _too_large(max_bytes)
        pieces: list[bytes] = []
        size = 0
        while True:
            message = await self.request.receive()
            if message["type"] == "http.disconnect":
                raise ClientGone
            piece = message.get("body", b"")
            size += len(piece)
            if size > max_bytes:
                raise _too_large(max_bytes)
            if not message.get("more_body", False):
                return b"".join([*pieces, piece]) if pieces else piece
            if self._receipt is not None:
                self._receipt.expect(max(expected, size))
            pieces.append(piece)

    def turns(self, every_s: float = TURN_S) -> Turns:
        """For work on this request; take() raises ClientGone once the client has disconnected."""
        return _ClientTurns(self, every_s)

    async def check_client(self) -> None:
        """Raises ClientGone. For slow operations: once a request is read, nothing else checks."""
        if await self.request.is_disconnected():
            raise ClientGone

    @property
    def key(self) -> str | None:
        return self.request.headers.get("idempotency-key")


class _ClientTurns(Turns):
    def __init__(self, call: Call, every_s: float) -> None:
        super().__init__(every_s)
        self._call = call

    async def take(self) -> None:
        await super().take()
        await self._call.check_client()


class Endpoint:
    """The ASGI application of one operation."""

    def __init__(
        self, operation: Operation, identifies: Identifies, counts: Counts, fairness: Fairness,
        credentials: Credentials, audited: Audited,
    ) -> None:  # fmt: skip
        self._operation = operation
        self._identifies = identifies
        self._counts = counts
        self._fairness = fairness
        self._credentials = credentials
        self._audited = audited

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with ExitStack() as held:
            response = await self._answer(scope, receive, held)
            if response is not None:
                await send_in_pieces(response, scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, held: ExitStack) -> Response | None:
        """None: the client is gone. held: what is released after the answer was sent."""
        operation = self._operation
        begun = perf_counter()
        who: Identity | None = None
        receipt: Receipt | None = None
        response: Response | None = None
        try:
            who = None if operation.public else await self._identifies.identify(scope)
            if who is not None:
                self._fairness.request(who)
                self._fairness.answers.check(who)
                ask_as(who.user, operation.path, operator=who.operator)
                receipt = self._fairness.body(who)
            call = Call(Request(scope, receive), who, receipt)
            if operation.query is NoQuery and scope["query_string"]:
                call.query(NoQuery)
            response = await operation.serve(call)
            self._credentials.bind(response, scope)
            if who is not None:
                await self._hold(held, who, response)
        except OdcError as error:
            if isinstance(error, TooManyRequests):
                self._counts.limited(error.limit)
            response = problem_of(error)
        except ClientGone:
            self._audited.answered(scope, operation.path, who, None)
            return None
        except Exception as error:
            response = unexpected(error, operation.method, scope["path"])
        finally:
            if receipt is not None:
                if isinstance(response, Streamed):
                    # Its generator keeps the request, for hours if it is srun's.
                    held.callback(receipt.release)
                else:
                    receipt.release()
        assert response is not None
        self._audited.answered(scope, operation.path, who, response)
        self._counts.answered(
            operation.method, operation.path, response.status_code, perf_counter() - begun
        )
        return response

    async def _hold(self, held: ExitStack, who: Identity, response: Response) -> None:
        if not isinstance(response, Streamed):
            answers, done = self._fairness.answers, self._operation.method != "GET"
            held.enter_context(answers.hold(who, len(response.body), done=done))
            return
        try:
            held.enter_context(self._fairness.stream(who))
        except TooManyRequests:
            await response.abandon()
            raise


def _too_large(max_bytes: int) -> TooLarge:
    return TooLarge(f"the body has more than {max_bytes} bytes", "Send it in several requests.")
