"""The first step of every request: check its Host header, find its client, and let clients take
turns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.types import ASGIApp, Receive, Scope, Send

from odcd.api.http.problems import problem_of
from odcd.database.slots import ask_unknown
from odcd.errors import BadRequest
from odcd.front.hosts import Hosts
from odcd.front.near import ORIGIN, Origin
from odcd.front.peer import PEER, Peer
from odcd.front.proxies import Proxies, network_of
from odcd.front.rounds import Client, Rounds
from odcd.front.watch import Watch


class Door:
    def __init__(self, app: ASGIApp, hosts: Hosts, proxies: Proxies, watch: Watch) -> None:
        self._app = app
        self._hosts = hosts
        self._proxies = proxies
        self._watch = watch
        self._rounds = Rounds()

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
        client = self._client(scope)
        await self._rounds.begin(client)
        ask_unknown(f"client {client}")
        await self._app(scope, receive, send)

    def _client(self, scope: Mapping[str, Any]) -> Client:
        """As odcd.front.crowd counts connections, but behind a trusted proxy the proxy's client."""
        state: Mapping[str, Any] = scope.get("state", {})
        peer, origin, place = state.get(PEER), state.get(ORIGIN), scope.get("client")
        if isinstance(peer, Peer):
            return peer.uid
        forwarded = place is not None and place[1] == 0
        if isinstance(origin, Origin) and origin.uid is not None and not forwarded:
            return origin.uid
        return network_of(place[0]) if place is not None else ""
