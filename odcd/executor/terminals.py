"""A job's terminal: the daemon's side. The other side is odcd.runner.terminal."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import AsyncGenerator

from odcd.runner import terminal as protocol

READ_BYTES = 65536


class Attached:
    """A live terminal. Several clients may attach at once; all see the same output."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._received = bytearray()
        self._over = False

    @classmethod
    async def open(cls, fd: int) -> Attached:
        sock = socket.socket(fileno=fd)
        sock.setblocking(False)
        return cls(*await asyncio.open_unix_connection(sock=sock))

    async def read(self) -> bytes:
        """The job's output; b"" when it has ended."""
        while not self._over:
            taken = protocol.take_frame(self._received)
            if taken is None:
                data = await self._reader.read(READ_BYTES)
                self._over = not data
                self._received += data
            elif taken[0] == b"o" and taken[1]:
                return taken[1]
            elif taken[0] == b"e":
                self._over = True
        return b""

    async def write(self, data: bytes) -> None:
        await self._send(b"i", data)

    async def resize(self, rows: int, cols: int) -> None:
        await self._send(b"r", struct.pack(">HH", rows, cols))

    async def _send(self, kind: bytes, data: bytes) -> None:
        self._writer.write(protocol.frame(kind, data))
        await self._writer.drain()

    async def close(self) -> None:
        self._writer.close()


class Replayed:
    """The terminal of a job that has ended: its output; input is ignored."""

    def __init__(self, fd: int | None, content: AsyncGenerator[bytes] | None) -> None:
        self._fd = fd
        self._content = content

    async def read(self) -> bytes:
        return await anext(self._content, b"") if self._content else b""

    async def write(self, data: bytes) -> None:
        pass

    async def resize(self, rows: int, cols: int) -> None:
        pass

    async def close(self) -> None:
        if self._content:
            await self._content.aclose()
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
