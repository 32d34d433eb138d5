"""The sessions of the page, and the check that a form was posted by the page itself.

A session is a cookie that only the page's routes read, so no other site can make a browser use the
API with it. It stands for a row in the table of API keys, valid for 12 hours, or less if the API
key that it was made with ends earlier.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import NamedTuple
from weakref import WeakValueDictionary

from starlette.requests import Request
from starlette.responses import Response

from odcd.api.http.context import Api
from odcd.api.http.identity import PEER, Identifier
from odcd.api.http.streaming import Streamed
from odcd.errors import NotAuthenticated, NotOwner, OdcError, WrongOrigin
from odcd.page.places import Place, check_session, check_ticket, place_of
from odcd.records.api_keys import digest_of
from odcd.records.job import Identity
from odcd.records.page_keys import (
    SESSION_LIFE,
    TICKET_LIFE,
    session_digest,
    session_of,
    ticket_digest,
    ticket_of,
)
from odcd.stores.page_sessions import PageKey

log = logging.getLogger(__name__)

COOKIE = "odc-page"
LOOK_S = 5.0
HOW = "`odcctl page` prints a link that logs you in; it works once, for one minute."


class Entered(NamedTuple):
    """A new session: the cookie's value, and its lifetime."""

    who: Identity
    value: str
    life_s: int


class Guest(NamedTuple):
    """The user of a ticket, and the user that the browser is already logged in as.

    expected: only this user could have sent the ticket, or it changes nothing.
    """

    who: Identity
    now: Identity | None
    expected: bool


class Sessions:
    def __init__(self, api: Api, identifier: Identifier) -> None:
        self._api = api
        self._identifier = identifier
        # The stream holds the event, so ended streams disappear from here.
        self._streams: WeakValueDictionary[str, asyncio.Event] = WeakValueDictionary()

    def bind(self, response: Streamed, request: Request) -> None:
        """End the stream when its session ends."""
        value = _cookie(request)
        if PEER not in request.scope.get("state", {}) and value is not None:
            digest = session_digest(value)
            ended = self._streams[digest] = self._api.credentials.watch(digest)
            response.until(ended)

    async def run(self) -> None:
        """Until cancelled, end streaming sessions whose account is gone."""
        while True:
            await self._api.clock.sleep(LOOK_S)
            for digest in [*self._streams]:
                try:
                    found = await self._api.store.page_sessions.get_user(
                        digest, self._api.clock.now()
                    )
                    if found is not None:
                        await self._admit(digest, found)
                except NotAuthenticated:
                    continue
                except OdcError as error:
                    log.warning("page.sessions_unread", extra={"code": error.code})
                    break

    async def who(self, request: Request) -> Identity:
        """Raises NotAuthenticated, NotOwner."""
        if PEER in request.scope.get("state", {}):
            return await self._identifier.identify(request.scope)
        value = _cookie(request)
        if value is None:
            raise NotAuthenticated("you are not logged in here", HOW)
        here = place_of(request, self._api.proxy_uids)
        found = await self._api.store.page_sessions.get_user(
            session_digest(value), self._api.clock.now()
        )
        if found is None:
            raise NotAuthenticated("this session is unknown or has expired", HOW)
        try:
            check_session(found.uid, found.place, here)
        except NotAuthenticated:
            log.warning(
                "page.session_elsewhere",
                extra={"user": found.user_name, "made": found.place, "used": here.text},
            )
            raise
        return await self._admit(session_digest(value), found)

    async def _admit(self, digest: str, found: PageKey) -> Identity:
        """The user of a session or ticket, according to the machine's current account.

        Raises NotAuthenticated, and ends the session or ticket, if the account it was made for has
        changed.
        """
        if not found.as_peer:
            return self._identifier.admit(found.user_name, found.uid, found.gid)
        who = await self._identifier.still(found.user_name, found.uid, found.gid)
        if who is not None:
            return who
        log.warning("page.account_changed", extra={"user": found.user_name, "uid": found.uid})
        await self._api.store.keys.end(digest, self._api.clock.now())
        raise NotAuthenticated(
            f"uid {found.uid} of this machine is no longer user {found.user_name}", HOW
        )

    async def guest(self, request: Request, ticket: str) -> Guest | None:
        """The user of a ticket, which remains valid; None: it is no longer valid, but the browser
        is already logged in. Raises NotAuthenticated."""
        now: Identity | None = None
        with suppress(NotAuthenticated, NotOwner):
            now = await self.who(request)
        try:
            who, _ = await self._of_ticket(request, ticket)
        except NotAuthenticated:
            if now is None:
                raise
            return None
        # A daemon that serves one user gives tickets to no one else.
        alone = now is None and self._api.serves_uid is not None
        return Guest(who, now, alone or (now is not None and now.uid == who.uid))

    async def enter(self, request: Request, ticket: str) -> Entered:
        """Exchange a ticket for a session, once; it replaces the browser's current session. Raises
        NotAuthenticated."""
        who, here = await self._of_ticket(request, ticket)
        now, made = self._api.clock.now(), session_of()
        until = await self._api.store.page_sessions.create(
            ticket_digest(ticket), made, now, now + SESSION_LIFE, here.uid, here.text
        )
        if until is None:  # another request was faster
            raise _used_up()
        await self.leave(request)
        return Entered(who, made.key, int((until - now).total_seconds()))

    async def enter_by_key(self, request: Request, key: str) -> Entered:
        """Exchange an API key for a session. Raises NotAuthenticated."""
        digest, now, made = digest_of(key.strip().encode()), self._api.clock.now(), ticket_of()
        who = await self._identifier.of_key(digest, HOW)
        if not await self._api.store.page_sessions.create_ticket(
            who, made, digest, now, now + TICKET_LIFE
        ):
            raise NotAuthenticated("the API key has ended", HOW)
        return await self.enter(request, made.key)

    async def _of_ticket(self, request: Request, ticket: str) -> tuple[Identity, Place]:
        """Raises NotAuthenticated: the ticket was used, or belongs to another user of this
        machine."""
        here = place_of(request, self._api.proxy_uids)
        found = await self._api.store.page_sessions.get_user(
            ticket_digest(ticket), self._api.clock.now()
        )
        if found is None:
            raise _used_up()
        try:
            check_ticket(found.peer_uid, here)
        except NotAuthenticated:
            log.warning(
                "page.ticket_elsewhere",
                extra={"user": found.user_name, "for_uid": found.peer_uid, "used": here.text},
            )
            raise
        return await self._admit(ticket_digest(ticket), found), here

    async def leave(self, request: Request) -> None:
        value = _cookie(request)
        if value is not None:
            await self._api.store.keys.end(session_digest(value), self._api.clock.now())


def set_cookie(response: Response, request: Request, entered: Entered) -> None:
    response.set_cookie(
        _name(request), entered.value, max_age=entered.life_s, path="/", httponly=True,
        samesite="lax", secure=_is_https(request),
    )  # fmt: skip


def drop_cookie(response: Response, request: Request) -> None:
    response.delete_cookie(
        _name(request), path="/", httponly=True, samesite="lax", secure=_is_https(request)
    )


def check_origin(request: Request) -> None:
    """Check that the page itself posted the form, by headers of browsers. Raises WrongOrigin."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    same = origin is not None and origin.partition("://")[2] == request.headers.get("host")
    if site not in (None, "same-origin") or not same:
        raise WrongOrigin(
            "this form was not sent by the page itself", "Open the page, and use its own buttons."
        )


def _cookie(request: Request) -> str | None:
    # Parsed leniently, like browsers do: other programs on the host may set arbitrary cookies.
    return request.cookies.get(_name(request)) or None


def _name(request: Request) -> str:
    """The cookie's name contains the port in the browser's address, which may be forwarded. Cookies
    ignore ports, so two daemons on one host would otherwise replace each other's cookies."""
    port = request.headers.get("host", "").rpartition(":")[2]
    return f"{COOKIE}-{port}" if port.isascii() and port.isdecimal() else COOKIE


def _used_up() -> NotAuthenticated:
    return NotAuthenticated("that link was already used, or has expired", HOW)


def _is_https(request: Request) -> bool:
    forwarded = request.headers.get("x-forwarded-proto", "").partition(",")[0].strip()
    return "https" in (request.url.scheme, forwarded)
