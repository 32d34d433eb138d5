"""Refuse a WebSocket before it is accepted."""

from __future__ import annotations

from contextlib import suppress

from starlette.responses import Response
from starlette.websockets import WebSocket, WebSocketDisconnect


async def deny(socket: WebSocket, response: Response) -> None:
    """A client that has disconnected already needs no answer, and is no error."""
    with suppress(RuntimeError, OSError, WebSocketDisconnect):
        await socket.send_denial_response(response)
