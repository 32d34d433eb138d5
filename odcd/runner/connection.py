"""One connection to the runner's socket."""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Callable
from typing import Any

from odcd.runner import protocol
from odcd.runner.loop import READ, WRITE, Loop

READ_BYTES = 1024 * 1024


class Connection:
    """One peer: reads lines, sends messages and descriptors, and never waits for the peer."""

    def __init__(
        self,
        sock: socket.socket,
        loop: Loop,
        on_line: Callable[[Connection, bytes], None],
        on_close: Callable[[Connection], None],
    ) -> None:
        self.sock = sock
        self.version: int | None = None
        self.term: int | None = None
        self.malformed = 0
        """The number of this peer's requests that could not be parsed."""
        self._loop = loop
        self._on_line = on_line
        self._on_close = on_close
        self._received = bytearray()
        self._scanned = 0
        self._unsent: deque[tuple[bytes, int | None]] = deque()
        self.open = True

    def send(self, message: dict[str, Any], fd: int | None = None) -> None:
        """Send a message. fd, if given, is sent along and then closed here."""
        if not self.open:
            if fd is not None:
                os.close(fd)
            return
        self._unsent.append((protocol.encode(message), fd))
        if len(self._unsent) == 1:
            self._flush()

    def on_ready(self, events: int) -> None:
        if events & WRITE:
            self._flush()
        if events & READ and self.open:
            self._receive()

    def _flush(self) -> None:
        try:
            while self._unsent:
                data, fd = self._unsent[0]
                sent = socket.send_fds(self.sock, [data], [] if fd is None else [fd])
                if fd is not None:
                    os.close(fd)
                if sent == len(data):
                    self._unsent.popleft()
                else:
                    self._unsent[0] = (data[sent:], None)
        except BlockingIOError:
            pass
        except OSError:
            self.close()
            return
        self._loop.change(self.sock, self.on_ready, READ | (WRITE if self._unsent else 0))

    def _receive(self) -> None:
        try:
            data = self.sock.recv(READ_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data or len(self._received) > protocol.MAX_MESSAGE_BYTES:
            self.close()
            return
        self._received += data
        while self.open and (end := self._received.find(b"\n", self._scanned)) >= 0:
            line = bytes(self._received[:end])
            del self._received[: end + 1]
            self._scanned = 0
            self._on_line(self, line)
        self._scanned = len(self._received)

    def close(self) -> None:
        if self.open:
            self.open = False
            self._loop.forget(self.sock)
            self.sock.close()
            for _, fd in self._unsent:
                if fd is not None:
                    os.close(fd)
            self._on_close(self)
