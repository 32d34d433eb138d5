"""Count WebSockets: the open ones, and the close code of each that ended."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import Any, Protocol

from starlette.types import ASGIApp, Receive, Scope, Send

from odcd.api.http.audited import WHO, Audited

LEFT, BROKE = "left", "broke"
"""left: the client disconnected; broke: neither side closed the connection."""


class SocketCounts(Protocol):
    def know_sockets(self, route: str) -> None:
        """Export the metrics of this route even before its first connection."""
        ...

    def socket_opened(self, route: str) -> None: ...

    def socket_ended(self, route: str, code: str, *, opened: bool) -> None: ...


class CountedSocket:
    """Wraps the endpoint of one route."""

    def __init__(
        self, endpoint: ASGIApp, route: str, counts: SocketCounts, audited: Audited
    ) -> None:
        self._endpoint = endpoint
        self._route = route
        self._counts = counts
        self._audited = audited
        counts.know_sockets(route)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        opened = False
        code = BROKE

        async def sends(message: MutableMapping[str, Any]) -> None:
            nonlocal opened, code
            if message["type"] == "websocket.accept":
                opened = True
                self._counts.socket_opened(self._route)
            elif message["type"] == "websocket.close" and code == BROKE:
                code = str(message.get("code", 1000))
            elif message["type"] == "websocket.http.response.start":
                code = str(message["status"])
            await send(message)

        async def receives() -> MutableMapping[str, Any]:
            nonlocal code
            message = await receive()
            # The client may use any close code.
            if message["type"] == "websocket.disconnect" and code == BROKE:
                code = LEFT
            return message

        try:
            await self._endpoint(scope, receives, sends)
        finally:
            # The endpoint stores the caller there as soon as it is known.
            who = scope.get(WHO)
            self._audited.socket(scope, self._route, who, code, opened=opened)
            self._counts.socket_ended(self._route, code, opened=opened)
