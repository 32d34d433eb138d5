"""The HTTP of one connection: uvicorn's protocol with limits on heads, trailers and waiting times.

Sizes are checked before the parser reads, because the parser collects a header until it ends. They
are exact to one slice of the data that arrives at once.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from odcd.front.answers import bad_request
from odcd.front.near import ORIGIN, Origin
from odcd.front.peer import PEER, Peer
from odcd.front.rules import Rules
from odcd.front.watch import Nobody, Rejected, Watch

HEAD_SLICE, BODY_SLICE = 16 * 1024, 64 * 1024
BODY_HEADERS = frozenset({b"content-length", b"transfer-encoding"})
IDLE, HEAD, BODY = range(3)
"""Between requests; in the request line or the headers; after them."""


class _Rejected(Exception):
    """Ends the parser's work; the answer has been chosen."""


class PeerProtocol(HttpToolsProtocol):
    """peer: the user at the other end of a Unix connection; origin: of a TCP connection. Both are
    in the state of every request's scope."""

    def __init__(
        self, *args: Any, peer: Peer | None = None, origin: Origin | None = None,
        rules: Rules | None = None, watch: Watch | None = None, **more: Any,
    ) -> None:  # fmt: skip
        super().__init__(*args, **more)
        # Copied into the scope of every request, also if it becomes a WebSocket.
        if peer is not None:
            self.app_state = {**self.app_state, PEER: peer}
        if origin is not None:
            self.app_state = {**self.app_state, ORIGIN: origin}
        self._rules = rules or Rules()
        self._watch = watch or Nobody()
        self._phase = IDLE
        self._size = 0
        """Bytes of the head so far; after it, bytes since the last piece of the body."""
        self._count = 0
        self._arrived = 0
        """Bytes of the body since the last check."""
        self._paused = False
        """Whether the daemon has paused reading since the last check."""
        self._timer: asyncio.TimerHandle | None = None
        self._answer: bytes | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._set_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._drop_timer()
        self._unset_keepalive_if_required()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self) -> None:
        self._drop_timer()
        super().handle_websocket_upgrade()
        after = self.transport.get_protocol()
        assert isinstance(after, WebSocketsSansIOProtocol)
        if after.handshake_initiated:
            self._timer = self.loop.call_later(self._rules.handshake_s, self._unanswered, after)
        else:
            # The WebSocket protocol could not read the head, and would never answer.
            self._reject("malformed", 400, "the request is not a WebSocket handshake")

    def _unanswered(self, after: WebSocketsSansIOProtocol) -> None:
        self._timer = None
        if not after.handshake_complete and not self.transport.is_closing():
            why = f"the handshake was not answered within {self._rules.handshake_s:g} s"
            self._reject("head_late", 408, why)

    def _check_upgrade(self) -> None:
        parser = self.parser
        assert parser is not None  # it exists until the connection ends
        if not (parser.should_upgrade() and self._should_upgrade()):
            return
        if parser.get_method() != b"GET":
            self._stop("malformed", 400, "a WebSocket must be opened with GET")
        if any(name in BODY_HEADERS for name, _ in self.headers):
            self._stop("malformed", 400, "a request that opens a WebSocket must not have a body")
        if self._answering():
            self._stop("malformed", 400, "a WebSocket was requested before the last answer")

    # -- what arrives -----------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            limit = BODY_SLICE if self._phase == BODY else HEAD_SLICE
            # The phase may change within the data, and with it the size of a slice.
            piece = data[at : at + limit]
            at += len(piece)
            self._feed(piece)
            if self.transport.is_closing() or self.transport.get_protocol() is not self:
                return
        if self._timer is None and self._waits():
            self._set_timer()

    def _feed(self, piece: bytes) -> None:
        arrived = self._arrived
        super().data_received(piece)
        if self._arrived != arrived:
            self._size = 0
            return
        self._size += len(piece)
        if self._size > self._rules.head_bytes and not self.transport.is_closing():
            self._reject(*self._too_large("the headers have", self._rules.head_bytes))

    def _waits(self) -> bool:
        """Whether the next step is for the client to send something."""
        if self._phase != IDLE:
            return True
        return not self._answering() and self.timeout_keep_alive_task is None

    def _answering(self) -> bool:
        return bool(self.cycle) and not self.cycle.response_complete

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._phase, self._size, self._count = HEAD, 0, 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        if len(self.url) > self._rules.target_bytes:
            limit = self._rules.target_bytes
            self._stop("head_size", 414, f"the request line has more than {limit} bytes")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count += 1
        if self._count > self._rules.headers:
            limit = self._rules.headers
            self._stop("head_size", 431, f"the request has more than {limit} headers")
        # Trailers would reach a request that is already answered.
        if self._phase == HEAD:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        if len(self.pipeline) >= self._rules.pipelined:
            self._stop("malformed", 400, "too many requests were sent before the first answer")
        self._check_upgrade()
        self._phase, self._size = BODY, 0
        self._drop_timer()
        super().on_headers_complete()
        self._note_pause()

    def on_body(self, body: bytes) -> None:
        self._arrived += len(body)
        super().on_body(body)
        self._note_pause()

    def on_message_complete(self) -> None:
        self._phase, self._size = IDLE, 0
        self._drop_timer()
        super().on_message_complete()

    def _note_pause(self) -> None:
        self._paused = self._paused or self.flow.read_paused

    # -- what does not arrive ---------------------------------------------------------------------

    def _set_timer(self) -> None:
        self._arrived = 0
        wait_s = self._rules.body_s if self._phase == BODY else self._rules.head_s
        self._timer = self.loop.call_later(wait_s, self._late)

    def _drop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        self._timer = None
        if self.transport.is_closing():
            return
        paused, self._paused = self._paused, False
        if paused or self.flow.read_paused or self._is_to_be_continued():
            self._set_timer()  # the daemon is the slow side, not the client
        elif self._phase != BODY:
            why = f"the request did not arrive within {self._rules.head_s:g} s"
            self._reject("head_late", 408, why)
        elif self._arrived < self._rules.body_rate * self._rules.body_s:
            rate = self._rules.body_rate
            self._reject("body_slow", 408, f"the body arrived at less than {rate} bytes a second")
        else:
            self._set_timer()

    def _is_to_be_continued(self) -> bool:
        return self._phase == BODY and bool(self.cycle and self.cycle.waiting_for_100_continue)

    # -- the end ----------------------------------------------------------------------------------

    def _too_large(self, what: str, limit: int) -> tuple[Rejected, int, str]:
        return "head_size", 431, f"{what} more than {limit} bytes"

    def _stop(self, reason: Rejected, status: int, detail: str) -> None:
        """Reject from within a callback of the parser, which must not be fed any further."""
        self._answer = _answer(status, detail)
        self._watch.request_rejected(reason, self._client())
        raise _Rejected

    def send_400_response(self, msg: str) -> None:
        answer, self._answer = self._answer, None
        if answer is None:
            self._watch.request_rejected("malformed", self._client())
            answer = _answer(400, "the request is not HTTP")
        self._end(answer)

    def _reject(self, reason: Rejected, status: int, detail: str) -> None:
        self._watch.request_rejected(reason, self._client())
        self._end(_answer(status, detail))

    def _client(self) -> str | int:
        peer = self.app_state.get(PEER)
        if isinstance(peer, Peer):
            return peer.uid
        return "" if self.client is None else self.client[0]

    def _end(self, answer: bytes) -> None:
        self._drop_timer()
        if self._answering() and self.cycle.response_started:
            # Another answer has been sent partly.
            self.transport.abort()
        else:
            self.transport.write(answer)
            self.transport.close()


def _answer(status: int, detail: str) -> bytes:
    return bad_request(status, detail, "The connection was closed; send the request again.")
