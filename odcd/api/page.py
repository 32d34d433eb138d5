"""/v1/page/tickets: open the page from a terminal, as the user whom the API already knows."""

from __future__ import annotations

import ipaddress
from datetime import UTC
from typing import Annotated

import msgspec
from starlette.responses import Response

from odcd.api.answers.keys import PageTicket
from odcd.api.http.context import Api
from odcd.api.http.identity import LOGIN_HINT, PEER, key_of
from odcd.api.http.routing import JSON, Call, Operation
from odcd.errors import NotAuthenticated, WrongState
from odcd.front.near import ORIGIN, Origin
from odcd.records.page_keys import TICKET_LIFE, ticket_of

ENTER = "/page/enter"


class TicketQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    browser_uid: Annotated[int, msgspec.Meta(ge=0, lt=2**31)] | None = None
    """The uid on the daemon's machine whose browser will use the ticket. Default: the caller's."""


class PageRoutes:
    def __init__(self, api: Api) -> None:
        self._api = api

    def operations(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="POST",
                path="/v1/page/tickets",
                tag="keys",
                serve=self.ticket,
                query=TicketQuery,
                answers={201: (PageTicket,)},
                summary="Create a ticket that logs a browser in to the page as the caller, once",
            ),
        )

    async def ticket(self, call: Call) -> Response:
        query, url = call.query(TicketQuery), self._url(call)
        made, now = ticket_of(), self._api.clock.now()
        key, until = key_of(call.request.scope), now + TICKET_LIFE
        peer_uid = self._asker(call) if query.browser_uid is None else query.browser_uid
        if not await self._api.store.page_sessions.create_ticket(
            call.who, made, key, now, until, peer_uid
        ):
            raise NotAuthenticated("the API key is unknown or has expired", LOGIN_HINT)
        path = f"{ENTER}?ticket={made.key}"
        answer = PageTicket(
            ticket=made.key,
            expires_at=until.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            path=path,
            url=None if url is None else f"{url}{path}",
        )
        return Response(
            msgspec.json.encode(answer), 201, {"cache-control": "no-store"}, media_type=JSON
        )

    def _asker(self, call: Call) -> int | None:
        """On this machine, only the user who requested the ticket may use it in a browser."""
        state = call.request.scope.get("state", {})
        if PEER in state:
            return call.who.uid
        origin: Origin | None = state.get(ORIGIN)
        if origin is None or origin.uid in self._api.proxy_uids:
            return None
        return origin.uid

    def _url(self, call: Call) -> str | None:
        """None over TCP, where the client knows the address. Raises WrongState without one."""
        if PEER not in call.request.scope.get("state", {}):
            return None
        addresses = self._api.listens()
        if not addresses:
            raise WrongState(
                "this daemon only listens on its socket, which browsers cannot reach",
                "Start it with --listen 127.0.0.1:7070 (or ODC_LISTEN), or without --listen none.",
            )
        return page_url(*addresses[0], tls=self._api.tls)


def page_url(host: str, port: int, *, tls: bool = False) -> str:
    """The address for a browser on the daemon's machine."""
    scheme = "https" if tls else "http"
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return f"{scheme}://{host}:{port}"
    if address.is_unspecified:
        address = ipaddress.ip_address("127.0.0.1" if address.version == 4 else "::1")
    name = f"[{address}]" if address.version == 6 else str(address)
    return f"{scheme}://{name}:{port}"
