"""A command in a container with its input: pods/exec over a WebSocket, v5.channel.k8s.io."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odcd.errors import RunnerDown
from odcd.executor.kubernetes.command_output import ENDED, STDERR, STDOUT, hang_up

if TYPE_CHECKING:
    import aiohttp

STDIN = 0
PIECE_BYTES = 32_768
MAX_ERROR_BYTES = 4096


class ExecStream:
    def __init__(self, socket: aiohttp.ClientWebSocketResponse, pod: str) -> None:
        self._socket = socket
        self._pod = pod
        self.errors = bytearray()
        """The first bytes of its standard error."""

    async def read(self) -> bytes:
        """Bytes that the command has printed; b"" when it or the connection has ended."""
        import aiohttp

        while True:
            message = await self._socket.receive()
            if message.type is not aiohttp.WSMsgType.BINARY:
                return b""
            data: bytes = message.data
            kind, data = data[:1], data[1:]
            if kind == bytes([STDOUT]) and data:
                return data
            if kind == bytes([STDERR]) and len(self.errors) < MAX_ERROR_BYTES:
                self.errors += data
            elif kind == bytes([ENDED]):
                return b""

    async def write(self, data: bytes) -> None:
        """Raises RunnerDown when the connection has ended."""
        try:
            for at in range(0, len(data), PIECE_BYTES):
                await self._socket.send_bytes(bytes([STDIN]) + data[at : at + PIECE_BYTES])
        except (OSError, RuntimeError) as error:
            raise RunnerDown(f"the connection to pod {self._pod} broke: {error}") from error

    async def close(self) -> None:
        await hang_up(self._socket)
