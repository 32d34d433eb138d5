"""The daemon's HTTP server on its event loop, with other limits and a small application."""

from __future__ import annotations

import asyncio
import re
import socket
import threading
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import uvloop
from starlette.types import ASGIApp, Receive, Scope, Send

from odcd.api.http.server import HttpServer
from odcd.front.rules import Rules
from odcd.front.settings import FrontSettings
from odcd.front.watch import Refused, Rejected


@dataclass
class Counts:
    open: int = 0
    refused: Counter[str] = field(default_factory=Counter[str])
    rejected: Counter[str] = field(default_factory=Counter[str])

    def connected(self, change: int) -> None:
        self.open += change

    def connection_refused(self, reason: Refused, client: str | int = "") -> None:
        self.refused[reason] += 1

    def request_rejected(self, reason: Rejected, client: str | int = "") -> None:
        self.rejected[reason] += 1


@dataclass
class Opened:
    place: tuple[str, int]
    path: Path
    counts: Counts
    seen: list[Scope]
    """The requests that reached the application."""


def echo(seen: list[Scope]) -> ASGIApp:
    """Reads the whole body, and answers with its size."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope)
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            size += len(message.get("body", b""))
            more = message.get("more_body", False)
        body = str(size).encode()
        length = (b"content-length", str(len(body)).encode())
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        await send({"type": "http.response.body", "body": body})

    return app


@contextmanager
def opened(
    folder: Path, *, rules: Rules | None = None, front: FrontSettings | None = None,
    app: ASGIApp | None = None,
) -> Generator[Opened]:  # fmt: skip
    seen: list[Scope] = []
    counts = Counts()
    server = HttpServer(
        app or echo(seen), path=folder / "s", mode=0o666, listen=("127.0.0.1", 0),
        front=front, rules=rules, watch=counts,
    )  # fmt: skip
    server.bind()

    def run() -> None:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(server.run())

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield Opened(server.addresses[0], folder / "s", counts, seen)
    finally:
        server.stop()
        thread.join()


def received(connection: socket.socket) -> bytes:
    """All data until the other end closes the connection, or resets it."""
    pieces: list[bytes] = []
    try:
        while piece := connection.recv(65_536):
            pieces.append(piece)
    except ConnectionError:
        pass
    return b"".join(pieces)


def status(answer: bytes) -> int:
    """The status of the last answer; 0 without an answer."""
    found = re.findall(rb"HTTP/1\.1 (\d{3}) ", answer)
    return int(found[-1]) if found else 0
