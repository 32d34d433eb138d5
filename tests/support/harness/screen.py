"""A client attached to a terminal of a runner's job."""

from __future__ import annotations

import json
import socket
import struct
import time

from odcd.runner import terminal
from tests.support.harness.runner import PATIENCE_S, Client, RequestRefused, until


class Screen:
    """One attached client; keeps the output that it received."""

    def __init__(self, client: Client, job: int = 1) -> None:
        def attach() -> int | None:
            try:
                return client.ask_with_fd("attach", job=job, attempt=1, rank=0)[1][0]
            except RequestRefused as error:
                if error.code != "not_ready":
                    raise
                return None

        self._sock = socket.socket(fileno=until(attach))
        self._sock.settimeout(PATIENCE_S)
        self._received = bytearray()
        self.shown = ""
        self.end: dict[str, object] | None = None

    def __enter__(self) -> Screen:
        return self

    def __exit__(self, *_: object) -> None:
        self._sock.close()

    def type(self, text: str) -> None:
        self._sock.sendall(terminal.frame(b"i", text.encode()))

    def resize(self, rows: int, columns: int) -> None:
        self._sock.sendall(terminal.frame(b"r", struct.pack(">HH", rows, columns)))

    def read_until(self, text: str) -> None:
        until = time.monotonic() + PATIENCE_S
        while text not in self.shown:
            assert self.end is None, f"ended without showing {text!r}: {self.shown!r}"
            # What is shown may never end.
            assert time.monotonic() < until, f"never showed {text!r}: {self.shown[-2000:]!r}"
            self.read()

    def read_past(self, text: str) -> None:
        """Wait until this was shown, and discard everything up to it."""
        self.read_until(text)
        self.shown = self.shown.partition(text)[2]

    def read_to_end(self) -> None:
        while self.end is None:
            self.read()

    def read(self) -> None:
        data = self._sock.recv(65536)
        assert data, "closed without an end"
        self._received += data
        while taken := terminal.take_frame(self._received):
            kind, content = taken
            if kind == b"e":
                self.end = json.loads(content)
            else:
                self.shown += content.decode()
