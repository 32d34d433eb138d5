"""Who looks at the page, and whether what is posted comes from it.

A session is a cookie, which only the page's routes read: no other site can make a browser use the
API with it. What it stands for is a row of an API key, of 12 hours.
"""

from __future__ import annotations

from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from odcd.api.context import Api
from odcd.api.identity import PEER, Identifier
from odcd.errors import NotAuthenticated, NotOwner
from odcd.keys import digest_of
from odcd.model import Identity
from odcd.page_keys import SESSION_LIFE, session_digest, session_of, ticket_digest

COOKIE = "odc-page"
HOW = "`odcctl page` prints an address that lets you in; it works once, for a minute."


class Entered(NamedTuple):
    """A session just made: the cookie's value."""

    who: Identity
    value: str


class Sessions:
    def __init__(self, api: Api, identifier: Identifier) -> None:
        self._api = api
        self._identifier = identifier

    async def who(self, request: Request) -> Identity:
        """Raises NotAuthenticated, NotOwner."""
        if PEER in request.scope.get("state", {}):
            return await self._identifier.identify(request.scope)
        value = _cookie(request)
        if value is None:
            raise NotAuthenticated("you are not logged in here", HOW)
        return await self._identifier.of_key(session_digest(value), HOW)

    async def enter(self, ticket: str) -> Entered:
        """Trade a ticket for a session, once. Raises NotAuthenticated."""
        digest, now = ticket_digest(ticket), self._api.clock.now()
        who = await self._identifier.of_key(digest, HOW)
        if not await self._api.store.end_key(digest, now):  # another was faster
            raise NotAuthenticated("that address was used already, or is too old", HOW)
        return await self._begin(who)

    async def enter_by_key(self, key: str) -> Entered:
        """Trade an API key for a session. Raises NotAuthenticated."""
        who = await self._identifier.of_key(digest_of(key.strip().encode()), HOW)
        return await self._begin(who)

    async def _begin(self, who: Identity) -> Entered:
        made = session_of()
        await self._api.store.keep_key(who, made, self._api.clock.now(), SESSION_LIFE)
        return Entered(who, made.key)

    async def leave(self, request: Request) -> None:
        value = _cookie(request)
        if value is not None:
            await self._api.store.end_key(session_digest(value), self._api.clock.now())


def set_cookie(response: Response, request: Request, value: str) -> None:
    response.set_cookie(
        _name(request), value, max_age=int(SESSION_LIFE.total_seconds()), path="/", httponly=True,
        samesite="lax", secure=_is_https(request),
    )  # fmt: skip


def drop_cookie(response: Response, request: Request) -> None:
    response.delete_cookie(
        _name(request), path="/", httponly=True, samesite="lax", secure=_is_https(request)
    )


def check_origin(request: Request) -> None:
    """Was this posted by a page of ours? Browsers tell, unasked. Raises NotOwner."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    same = origin is not None and origin.partition("://")[2] == request.headers.get("host")
    if site not in (None, "same-origin") or not same:
        raise NotOwner(
            "this was not sent by the page itself", "Open the page, and use its own buttons."
        )


def _cookie(request: Request) -> str | None:
    # As browsers read them: cookies of other programs on the host may be anything.
    return request.cookies.get(_name(request)) or None


def _name(request: Request) -> str:
    """Cookies do not know ports: two daemons of one machine would take each other's."""
    server = request.scope.get("server")
    return f"{COOKIE}-{server[1]}" if server and server[1] else COOKIE


def _is_https(request: Request) -> bool:
    forwarded = request.headers.get("x-forwarded-proto", "").partition(",")[0].strip()
    return "https" in (request.url.scheme, forwarded)
