"""An executor whose dev servers are a port of this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from odcd.errors import WrongState


class TcpStream:
    """Implements odcd.executor.base.ByteStream."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self.closed = False

    async def read(self) -> bytes:
        return await self._reader.read(65_536)

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def write_eof(self) -> None:
        with suppress(OSError):
            self._writer.write_eof()

    def cut(self) -> None:
        """As when the pod goes."""
        self._writer.transport.abort()

    async def close(self) -> None:
        """If a dev server does not read, data that it has not received by then is lost."""
        self.closed = True
        self._writer.close()
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(1):
                await self._writer.wait_closed()
        self._writer.transport.abort()


class Dialling:
    """The parts of an executor that the connection needs."""

    def __init__(self, port: int) -> None:
        self.dev_servers = self
        self.port = port
        self.opened: list[tuple[int, int, int, int]] = []
        self.streams: list[TcpStream] = []
        self.key_updates: list[tuple[int, int, list[str]]] = []

    async def open_stream(self, job_id: int, attempt: int, rank: int, port: int) -> TcpStream:
        self.opened.append((job_id, attempt, rank, port))
        try:
            stream = TcpStream(*await asyncio.open_connection("127.0.0.1", self.port))
        except OSError as error:
            raise WrongState(f"nothing listens: {error}") from error
        self.streams.append(stream)
        return stream

    async def set_keys(self, job_id: int, attempt: int, lines: Sequence[str]) -> None:
        self.key_updates.append((job_id, attempt, list(lines)))
