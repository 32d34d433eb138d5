"""The WebSocket protocol of one connection: uvicorn's, with limits on small frames and pings.

A frame has two bytes at least, and parsing one takes microseconds, so a single read can hold half a
second of work. All WebSockets share short turns of the event loop, in which clients alternate.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Any

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.frames import Frame

from odcd.front.near import ORIGIN, Origin
from odcd.front.peer import PEER, Peer

TURN_S = 0.005
PAUSE = 2.0
"""The pause after a full turn, as a multiple of the turn."""
SLICE = 2 * 1024
"""Bytes that are parsed before the time is checked."""
MAX_FRAGMENTS = 1024
"""Fragments of a message are joined at this number, because empty ones need memory too."""

_PONG = b"\x8a"
"""The first byte of a pong: the final frame of its message, with opcode 10."""

Client = int | str


class Turns:
    """Decides when a WebSocket may parse: one turn for all of them in each round of the event loop,
    and a pause after a turn that was used up. Waiting clients continue one after the other."""

    def __init__(self) -> None:
        self._until: float | None = None
        """When the current turn ends; None: a new one may begin."""
        self._waiting: dict[Client, deque[BoundedWebSocket]] = {}

    def may_parse(self) -> bool:
        """Whether the turn has time left. Begins a turn if there is none."""
        now = time.monotonic()
        if self._until is None:
            self._until = now + TURN_S
            # Runs after all connections that can be read now.
            asyncio.get_running_loop().call_soon(self._end)
        return now < self._until

    def wait(self, socket: BoundedWebSocket) -> None:
        """Call its parse_slice() in a later turn."""
        self._waiting.setdefault(socket.client_key, deque()).append(socket)

    def _end(self) -> None:
        loop = asyncio.get_running_loop()
        if self._waiting:
            loop.call_later(PAUSE * TURN_S, self._continue)
        else:
            self._until = None

    def _continue(self) -> None:
        end = time.monotonic() + TURN_S
        while self._waiting and time.monotonic() < end:
            client = next(iter(self._waiting))
            sockets = self._waiting.pop(client)
            socket = sockets.popleft()
            if socket.parse_slice():
                sockets.append(socket)
            if sockets:
                # Behind the other clients.
                self._waiting[client] = sockets
        self._end()


class _Merged(asyncio.Queue[Any]):
    """Adjacent binary messages become one: every WebSocket of odc carries a stream of bytes, and an
    application spends more on a message than on its bytes."""

    def _init(self, maxsize: int) -> None:
        self._queue = deque[Any]()

    def _put(self, item: Any) -> None:
        last = self._queue[-1] if self._queue else {}
        if "bytes" in item and "bytes" in last:
            last["bytes"] += item["bytes"]
        else:
            self._queue.append(item)


class BoundedWebSocket(WebSocketsSansIOProtocol):
    def __init__(self, *args: Any, turns: Turns, **more: Any) -> None:
        """turns: shared by all WebSockets of the daemon."""
        super().__init__(*args, **more)
        self.queue = _Merged()
        self._turns = turns
        self._unparsed = bytearray()
        self._queued = False
        """Whether it waits for a later turn."""
        self._pong: list[bytes] = []
        """The answer to the last ping, while the client does not read."""

    @property
    def client_key(self) -> Client:
        """The user or the address at the other end."""
        peer, origin = self.app_state.get(PEER), self.app_state.get(ORIGIN)
        if isinstance(peer, Peer):
            return peer.uid
        if isinstance(origin, Origin) and origin.uid is not None:
            return origin.uid
        return self.client[0] if self.client else ""

    def data_received(self, data: bytes) -> None:
        if not self.handshake_initiated:
            super().data_received(data)
            return
        self._unparsed += data
        self._parse()
        if self._unparsed:
            self.transport.pause_reading()

    def _parse(self) -> None:
        while not self._queued and self._can_parse():
            if not self._turns.may_parse():
                self._queued = True
                self._turns.wait(self)
                return
            self._feed()

    def parse_slice(self) -> bool:
        """Called by Turns. Returns whether more is left to parse now."""
        if self._can_parse():
            self._feed()
        self._queued = self._can_parse()
        if not (self._unparsed or self.read_paused or self.transport.is_closing()):
            self.transport.resume_reading()
        return self._queued

    def _can_parse(self) -> bool:
        return bool(self._unparsed) and not self.read_paused and not self.transport.is_closing()

    def _feed(self) -> None:
        piece = bytes(self._unparsed[:SLICE])
        del self._unparsed[:SLICE]
        super().data_received(piece)

    async def receive(self) -> Any:
        message = await super().receive()
        self._resume()
        return message

    async def send(self, message: Any) -> None:
        await super().send(message)
        self._resume()

    def _resume(self) -> None:
        """Continue with data that waited until the application had read all messages."""
        if self._can_parse():
            self._parse()
            if self._unparsed:
                self.transport.pause_reading()

    def handle_cont(self, event: Frame) -> None:
        super().handle_cont(event)
        if len(self.frames) >= MAX_FRAGMENTS:
            self.frames = [b"".join(self.frames)]

    def handle_ping(self) -> None:
        frames = self.conn.data_to_send()
        pongs = [frame for frame in frames if frame[:1] == _PONG]
        # Of several pings, only the last one must be answered (RFC 6455, 5.5.3).
        self._pong = pongs[-1:] or self._pong
        if self.writable.is_set():
            self._send_pong()
        if len(pongs) < len(frames):
            self.transport.write(b"".join(frame for frame in frames if frame[:1] != _PONG))

    def resume_writing(self) -> None:
        super().resume_writing()
        self._send_pong()

    def _send_pong(self) -> None:
        pong, self._pong = self._pong, []
        if pong and not self.close_sent and not self.transport.is_closing():
            self.transport.write(b"".join(pong))

    def connection_lost(self, exc: Exception | None) -> None:
        self._unparsed.clear()
        super().connection_lost(exc)
