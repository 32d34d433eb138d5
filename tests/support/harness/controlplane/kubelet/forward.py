"""pods/portforward over a WebSocket, as a container runtime serves it: v4.channel.k8s.io."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from aiohttp import WSMsgType, web

_DATA, _ERROR = b"\0", b"\1"


async def serve_forward(request: web.Request) -> web.StreamResponse:
    """One port; containers share the machine's network, so it is a port of the machine."""
    port = int(request.query["port"])
    socket = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
    await socket.prepare(request)
    for channel in (_DATA, _ERROR):
        await socket.send_bytes(channel + port.to_bytes(2, "little"))
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError as error:
        await socket.send_bytes(_ERROR + f"error forwarding port {port}: {error}".encode())
        await socket.close()
        return socket
    feeding = asyncio.create_task(_feed(socket, writer))
    try:
        with suppress(ConnectionError):
            while data := await reader.read(1 << 14):
                await socket.send_bytes(_DATA + data)
    finally:
        feeding.cancel()
        writer.close()
        await socket.close()
    return socket


async def _feed(socket: web.WebSocketResponse, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        async for message in socket:
            if message.type is WSMsgType.BINARY and message.data[:1] == _DATA:
                writer.write(message.data[1:])
                await writer.drain()
    writer.close()
