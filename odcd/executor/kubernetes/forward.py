"""A port of a pod through the API server: pods/portforward over a WebSocket, v4.channel.k8s.io.

Every message starts with its channel: 0 for the bytes of the port, 1 for errors. The first message
of each channel has the port's number. The protocol cannot close only one direction.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from odcd.errors import RunnerDown, WrongState

if TYPE_CHECKING:
    import aiohttp

log = logging.getLogger(__name__)

PROTOCOL = "v4.channel.k8s.io"
DATA, ERROR = 0, 1
PORT_BYTES = 2
PIECE_BYTES = 32_768
CLOSE_S = 5.0


class Forward:
    """Implements odcd.executor.base.ByteStream."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, pod: str) -> None:
        self._socket = socket
        self._pod = pod
        self._heads = {DATA: PORT_BYTES, ERROR: PORT_BYTES}
        """For each channel, the bytes of the port's number that are still to come."""

    async def read(self) -> bytes:
        import aiohttp

        while True:
            message = await self._socket.receive()
            if message.type is aiohttp.WSMsgType.ERROR:
                raise RunnerDown(f"the connection to pod {self._pod} broke: {message.data}")
            if message.type is not aiohttp.WSMsgType.BINARY:
                return b""
            data: bytes = message.data
            if not data or data[0] not in self._heads:
                continue
            channel, data = data[0], data[1:]
            head = min(self._heads[channel], len(data))
            self._heads[channel] -= head
            data = data[head:]
            if data and channel == ERROR:
                error_text = " ".join(data.decode(errors="replace").split())[:300]
                raise WrongState(f"pod {self._pod} cannot be reached: {error_text}")
            if data:
                return data

    async def write(self, data: bytes) -> None:
        for at in range(0, len(data), PIECE_BYTES):
            await self._socket.send_bytes(bytes([DATA]) + data[at : at + PIECE_BYTES])

    async def write_eof(self) -> None:
        """Does nothing: the protocol has no such message."""

    async def close(self) -> None:
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._socket.close()
        except TimeoutError:
            log.info("forward.not_closed", extra={"pod": self._pod})
