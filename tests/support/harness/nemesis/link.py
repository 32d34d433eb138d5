"""The network between one daemon and PostgreSQL: a TCP relay that can lose, delay and reset."""

from __future__ import annotations

import select
import socket
import struct
import threading
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal

Way = Literal["up", "down"]
"""up: from the daemon to PostgreSQL."""
BOTH: tuple[Way, Way] = ("up", "down")
CHUNK = 65536
MAX_BUFFERED = 64
POLL_S = 0.02


@dataclass(eq=False)
class _Pipe:
    """One direction of one connection."""

    way: Way
    source: socket.socket
    sink: socket.socket
    chunks: deque[tuple[float, bytes]] = field(default_factory=deque)
    ended: bool = False
    """The source sends nothing more."""
    closed: bool = False
    """The sink has been notified."""


class Link:
    """Relays connections of 127.0.0.1:port. PostgreSQL sees `address` as their client.

    A link that is held accepts bytes from neither side in the held direction, and closes nothing:
    both sides see a peer that has gone silent.
    """

    def __init__(self, behind: int, address: str) -> None:
        """behind: the port of PostgreSQL. address: of the loopback network, 127.0.0.0/8."""
        self.address = address
        self._behind = behind
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._pipes: set[_Pipe] = set()
        self._held: frozenset[Way] = frozenset()
        self._delay_s = 0.0
        self._to_reset = False
        self._over = False
        self._thread = threading.Thread(target=self._run, name=f"link {address}", daemon=True)
        self._thread.start()

    def hold(self, *ways: Way) -> None:
        self._held = frozenset(ways)

    def slow(self, delay_s: float) -> None:
        self._delay_s = delay_s

    def reset(self) -> None:
        """End every connection with RST, on both sides; new ones are accepted."""
        self._to_reset = True

    def mend(self) -> None:
        self._held = frozenset()
        self._delay_s = 0.0

    def close(self) -> None:
        self._over = True
        self._thread.join()
        self._reset_all()
        self._listener.close()

    def _run(self) -> None:
        while not self._over:
            if self._to_reset:
                self._to_reset = False
                self._reset_all()
            readers = {
                pipe.source: pipe
                for pipe in self._pipes
                if pipe.way not in self._held and not pipe.ended and len(pipe.chunks) < MAX_BUFFERED
            }
            # A handshake needs both directions.
            listening = [] if self._held else [self._listener]
            readable, _, _ = select.select([*readers, *listening], [], [], POLL_S)
            for one in readable:
                if one is self._listener:
                    self._accept()
                else:
                    self._receive(readers[one])
            for pipe in list(self._pipes):
                if pipe in self._pipes and pipe.way not in self._held:
                    self._deliver(pipe)

    def _accept(self) -> None:
        daemon, _ = self._listener.accept()
        try:
            server = socket.create_connection(
                ("127.0.0.1", self._behind), timeout=2, source_address=(self.address, 0)
            )
        except OSError:
            _hang_up(daemon)
            return
        for side in (daemon, server):
            side.setblocking(False)
            side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._pipes |= {_Pipe("up", daemon, server), _Pipe("down", server, daemon)}

    def _receive(self, pipe: _Pipe) -> None:
        if pipe not in self._pipes:
            return
        try:
            data = pipe.source.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            self._drop(pipe)
            return
        if data:
            pipe.chunks.append((time.monotonic() + self._delay_s, data))
        else:
            pipe.ended = True

    def _deliver(self, pipe: _Pipe) -> None:
        try:
            while pipe.chunks and pipe.chunks[0][0] <= time.monotonic():
                due, data = pipe.chunks.popleft()
                try:
                    sent = pipe.sink.send(data)
                except BlockingIOError:
                    sent = 0
                if sent < len(data):
                    pipe.chunks.appendleft((due, data[sent:]))
                    return
            if pipe.ended and not pipe.chunks and not pipe.closed:
                pipe.closed = True
                pipe.sink.shutdown(socket.SHUT_WR)
        except OSError:
            self._drop(pipe)
            return
        if pipe.closed and all(p.closed for p in self._twins(pipe)):
            self._drop(pipe)

    def _twins(self, pipe: _Pipe) -> list[_Pipe]:
        return [p for p in self._pipes if p.source in (pipe.source, pipe.sink)]

    def _drop(self, pipe: _Pipe) -> None:
        """As a network does whose one end is gone: the other end hears of it."""
        self._pipes -= set(self._twins(pipe))
        _hang_up(pipe.source)
        _hang_up(pipe.sink)

    def _reset_all(self) -> None:
        for pipe in list(self._pipes):
            self._drop(pipe)


def _hang_up(side: socket.socket) -> None:
    with suppress(OSError):
        side.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    side.close()
