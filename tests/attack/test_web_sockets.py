"""Small frames and pings of one client neither block the event loop nor fill the memory."""

from __future__ import annotations

import asyncio
import base64
import os
import socket
import struct
import time
from pathlib import Path
from typing import Any

import pytest
from starlette.types import Receive, Scope, Send

from tests.attack.doors import Opened, opened

BINARY, CONTINUED, CLOSE, PING, PONG = 2, 0, 8, 9, 10
FRAMES = 20_000
SOCKETS = 2
LONGEST_CPU_S = 0.06
"""For one turn of a socket and the application's work on it."""
KERNEL_BYTES = 1024 * 1024
"""More than what a Unix socket and the daemon's buffer hold."""


def frame(kind: int, data: bytes = b"", *, last: bool = True) -> bytes:
    """A client's frame of at most 125 bytes; its mask is 0."""
    return bytes([0x80 * last | kind, 0x80 | len(data)]) + bytes(4) + data


def connected(opened: Opened, *, timeout_s: float = 30) -> socket.socket:
    client = socket.socket(socket.AF_UNIX)
    client.settimeout(timeout_s)
    client.connect(str(opened.path))
    key = base64.b64encode(os.urandom(16)).decode()
    client.sendall(
        b"GET /terminal HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
        b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        + f"Sec-WebSocket-Key: {key}\r\n\r\n".encode()
    )
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        head += client.recv(1)
    assert head.startswith(b"HTTP/1.1 101 ")
    return client


def read_frame(client: socket.socket) -> tuple[int, bytes]:
    head = _read(client, 2)
    size = head[1]
    if size == 126:
        (size,) = struct.unpack(">H", _read(client, 2))
    return head[0] & 0x0F, _read(client, size)


def _read(client: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        piece = client.recv(size - len(data))
        assert piece, "the connection was closed"
        data += piece
    return data


class Listening:
    """Accepts every WebSocket, counts its bytes, and answers a text with that number. Measures for
    how much CPU time the event loop was blocked at most."""

    def __init__(self) -> None:
        self.longest_s = 0.0
        self.messages = 0
        self._ticking: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._ticking is None:
            self._ticking = asyncio.create_task(self._tick())
        await receive()
        await send({"type": "websocket.accept"})
        size = 0
        while (message := await receive())["type"] == "websocket.receive":
            self.messages += 1
            size += len(message.get("bytes") or b"")
            if message.get("text") is not None:
                await send({"type": "websocket.send", "text": str(size)})

    async def _tick(self) -> None:
        while True:
            before_s = time.thread_time()
            await asyncio.sleep(0)
            self.longest_s = max(self.longest_s, time.thread_time() - before_s)


@pytest.mark.parametrize(
    "flood",
    [
        pytest.param(frame(BINARY) * FRAMES, id="empty messages"),
        pytest.param(frame(BINARY, b"a") * FRAMES, id="messages of one byte"),
        pytest.param(frame(PING) * FRAMES, id="pings"),
        pytest.param(
            frame(BINARY, last=False) + frame(CONTINUED, last=False) * FRAMES + frame(CONTINUED),
            id="empty fragments",
        ),
    ],
)
def test_small_frames_do_not_block_the_event_loop(tmp_path: Path, flood: bytes) -> None:
    """Before: for about half a second per read. A user with 20 connections to their own terminal
    kept the daemon from answering for 26 s with 4 MiB, and it lost its leadership."""
    app = Listening()
    with opened(tmp_path, app=app) as front:
        clients = [connected(front) for _ in range(SOCKETS)]
        for client in clients:
            client.sendall(flood)
            client.sendall(b"\x81\x81" + bytes(4) + b"?")
        for client in clients:
            while (answer := read_frame(client))[0] == PONG:
                pass
            assert answer == (1, str(flood.count(b"\x81" + bytes(4) + b"a")).encode())
            client.close()
    assert app.longest_s < LONGEST_CPU_S


def test_pongs_that_are_never_read_are_not_kept(tmp_path: Path) -> None:
    """Before: the daemon kept all of them in memory, as fast as pings arrived."""
    pings = frame(PING, b"x" * 125) * 64_000
    with opened(tmp_path, app=Listening()) as front:
        client = connected(front)
        client.sendall(pings)
        client.sendall(frame(PING, b"last"))
        came = b""
        while not came.endswith(b"\x8a\x04last"):
            piece = client.recv(65_536)
            assert piece, came[-200:]
            came += piece
        client.close()
    assert len(came) < KERNEL_BYTES < len(pings) / 4


def test_a_ping_is_answered_at_once_when_the_client_reads(tmp_path: Path) -> None:
    with opened(tmp_path, app=Listening()) as front:
        client = connected(front)
        for number in range(3):
            client.sendall(frame(PING, b"%d" % number))
            assert read_frame(client) == (PONG, b"%d" % number)
        client.close()


def test_adjacent_binary_messages_arrive_whole_and_in_order(tmp_path: Path) -> None:
    got: list[Any] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            if "bytes" in message and got and isinstance(got[-1], bytes):
                got[-1] += message["bytes"]
            else:
                got.append(message.get("bytes", message.get("text")))
        got.append(message["type"])

    with opened(tmp_path, app=app) as front:
        client = connected(front)
        text = b"\x81\x81" + bytes(4) + b"t"
        for half in (0, 1):
            pieces = (frame(BINARY, b"%d" % at) for at in range(half, 3000, 2))
            client.sendall(b"".join(pieces) + text)
        client.sendall(frame(CLOSE, b"\x03\xe8"))
        while client.recv(65_536):
            pass
        client.close()
    wanted = [b"".join(b"%d" % at for at in range(half, 3000, 2)) for half in (0, 1)]
    assert got == [wanted[0], "t", wanted[1], "t", "websocket.disconnect"]
