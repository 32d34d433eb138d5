"""Check the Host header of every TCP request, and find the client's address behind proxies."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send

from odcd.api.http.problems import problem_of
from odcd.errors import BadRequest
from odcd.front.hosts import Hosts
from odcd.front.peer import PEER
from odcd.front.proxies import Proxies
from odcd.front.watch import Watch


class Door:
    def __init__(self, app: ASGIApp, hosts: Hosts, proxies: Proxies, watch: Watch) -> None:
        self._app = app
        self._hosts = hosts
        self._proxies = proxies
        self._watch = watch

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket") and PEER not in scope.get("state", {}):
            headers: list[tuple[bytes, bytes]] = scope["headers"]
            try:
                self._hosts.check(
                    [value for name, value in headers if name == b"host"],
                    scope.get("http_version", "1.1"),
                )
            except BadRequest as error:
                self._watch.request_rejected("host", (scope.get("client") or [""])[0])
                await problem_of(error)(scope, receive, send)
                return
            if (client := scope.get("client")) is not None:
                address = self._proxies.client(client[0], headers)
                if address != client[0]:
                    scope["client"] = (address, 0)
        await self._app(scope, receive, send)
