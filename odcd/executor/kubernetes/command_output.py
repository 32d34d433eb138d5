"""The output of a command in a container: messages of a WebSocket, v5.channel.k8s.io.

The command may belong to the user of a dev server, who is root in it: it may write anything, and
go on forever.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Protocol

import msgspec

from odcd.executor.kubernetes.pod_texts import plain

STDOUT, STDERR, ENDED = 1, 2, 3
"""Channels: the first byte of a message."""
MAX_STDERR_BYTES = 4096
MAX_READ_MIB = 16
"""Of all channels, kept or not."""
HANG_UP_S = 1.0


class _Ended(msgspec.Struct, frozen=True):
    """How a command ended."""

    status: str = ""
    message: str = ""


class CommandOutput:
    def __init__(self, stdout: bytearray, max_bytes: int) -> None:
        """stdout: receives standard output, at most max_bytes and the rest of a message."""
        self._stdout = stdout
        self._max_bytes = max_bytes
        self._stderr = bytearray()
        self._ended = b""
        self._read_bytes = 0

    def take(self, message: bytes) -> bool:
        """Process a message. Return whether more may follow."""
        self._read_bytes += len(message)
        channel, data = message[:1], message[1:]
        if channel == bytes([STDERR]) and len(self._stderr) < MAX_STDERR_BYTES:
            self._stderr += data
        elif channel == bytes([STDOUT]) and len(self._stdout) < self._max_bytes:
            self._stdout += data
        elif channel == bytes([ENDED]):
            self._ended = data
        return self._read_bytes <= MAX_READ_MIB << 20

    def error(self) -> str | None:
        """Why it failed; None: it succeeded."""
        if self._read_bytes > MAX_READ_MIB << 20:
            return f"it wrote more than {MAX_READ_MIB} MiB"
        how = msgspec.json.decode(self._ended, type=_Ended) if self._ended else _Ended()
        if how.status == "Success":
            return None
        error_text = " ".join(self._stderr.decode(errors="replace").split())[:500]
        return plain(error_text or how.message or "the connection broke")


class Socket(Protocol):
    """The part of aiohttp's WebSocket that is used here."""

    async def close(self) -> object: ...


async def hang_up(socket: Socket) -> None:
    """Close a connection. aiohttp alone waits for the other side for as long as that sends
    anything."""
    with suppress(TimeoutError):
        async with asyncio.timeout(HANG_UP_S):
            await socket.close()
