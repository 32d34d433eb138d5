"""The connections to a step's supervisor. Frames are those of odcd.runner.terminal:

to the supervisor    h {"owner"} as JSON, the first one; a what the owner has printed (8 bytes,
                     an offset of the journal); i where in the standard input the data begins
                     (8 bytes), and the data, empty at its end; s a signal (1 byte);
                     k {"signal", "grace_s", "why"} as JSON: end the step; r rows and columns
from the supervisor  h {"size", "acknowledged", "input", "accepts"} as JSON; n the journal has
                     grown; g more input is welcome: how much has arrived (8 bytes)
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
from collections.abc import Callable

from odcd.runner import socket_paths
from odcd.runner.terminal import frame, take_frame

MAX_FRAME_BYTES = 1024 * 1024


class Client:
    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.received = bytearray()
        self.owner = False


class Clients:
    def __init__(
        self, path: str, selector: selectors.BaseSelector,
        obey: Callable[[Client, bytes, bytes], None],
    ) -> None:  # fmt: skip
        """obey: receives each frame. Raises OSError."""
        self._path = path
        self._selector = selector
        self._obey = obey
        self._all: set[Client] = set()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        socket_paths.bind(self._listener, path)
        self._listener.listen(64)
        self._listener.setblocking(False)
        selector.register(self._listener, selectors.EVENT_READ, self._accept)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            sock, _ = self._listener.accept()
            sock.setblocking(False)
            client = Client(sock)
            self._all.add(client)
            self._selector.register(sock, selectors.EVENT_READ, lambda: self._receive(client))

    def _receive(self, client: Client) -> None:
        try:
            data = client.sock.recv(65536)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data or len(client.received) > MAX_FRAME_BYTES:
            self._drop(client)
            return
        client.received += data
        while client in self._all and (taken := take_frame(client.received)):
            self._obey(client, *taken)

    def _drop(self, client: Client) -> None:
        if client in self._all:
            self._all.discard(client)
            self._selector.unregister(client.sock)
            client.sock.close()

    def send(self, client: Client, kind: bytes, data: bytes = b"") -> None:
        """A client that reads nothing has unread news already, or is dropped."""
        if client not in self._all:
            return
        message = frame(kind, data)
        try:
            sent = client.sock.send(message)
        except BlockingIOError:
            if kind != b"n":
                self._drop(client)
            return
        except OSError:
            sent = -1
        if sent != len(message):
            self._drop(client)

    def tell_all(self, kind: bytes, data: bytes = b"", *, owner: bool = False) -> None:
        """owner: only to the owner's connections."""
        for client in list(self._all):
            if client.owner or not owner:
                self.send(client, kind, data)

    def close(self) -> None:
        """Accept no one any longer: the journal is complete."""
        with contextlib.suppress(OSError):
            os.unlink(self._path)
        self._selector.unregister(self._listener)
        self._listener.close()
        for client in list(self._all):
            self._drop(client)
