"""The place of a browser according to the kernel: a session is only valid in the place it was made.

Browsers send a cookie to every port of a host, so another user's program can receive it. On
loopback a session belongs to the uid whose sockets made it, and to the daemon's port.
"""

from __future__ import annotations

from typing import NamedTuple

from starlette.requests import Request

from odcd.errors import NotAuthenticated
from odcd.front.near import ORIGIN, Origin

PROXY_HINT = (
    "If a reverse proxy runs on this machine, name its account in ODC_PROXY_USERS; if you are "
    "another user here than in the terminal, `odcctl page --browser USER`."
)


class Place(NamedTuple):
    """uid: of the peer's socket, if that is the browser's own; None: the browser is elsewhere."""

    text: str
    uid: int | None


def place_of(request: Request, proxies: frozenset[int]) -> Place:
    """proxies: uids whose sockets forward requests of browsers elsewhere. Raises
    NotAuthenticated."""
    origin: Origin | None = request.scope.get("state", {}).get(ORIGIN)
    if origin is None:
        return Place("far", None)
    if origin.kind == "unknown":
        raise NotAuthenticated(
            "the kernel does not report which user of this machine sent this request", "Try again."
        )
    if origin.kind == "far":
        return Place(f"far port {origin.port}", None)
    if origin.uid in proxies:
        return Place("proxy", None)
    return Place(f"uid {origin.uid} port {origin.port}", origin.uid)


def check_ticket(peer_uid: int | None, here: Place) -> None:
    """peer_uid: the uid that may use the ticket. Raises NotAuthenticated."""
    if None not in (peer_uid, here.uid) and peer_uid != here.uid:
        raise NotAuthenticated(
            f"that link is for user {peer_uid} of this machine, but user {here.uid} opened it",
            PROXY_HINT,
        )


def check_session(uid: int, place: str | None, here: Place) -> None:
    """uid: of the session's user; place: where it was made. Raises NotAuthenticated."""
    if place is None:  # an older daemon made it
        place = here.text if here.uid in (None, uid) else f"uid {uid}"
    if place == here.text:
        return
    if here.uid is not None and place.split(" port ")[0] != f"uid {here.uid}":
        message = f"this session is not valid for user {here.uid} of this machine"
    elif place.partition("port ")[2] != here.text.partition("port ")[2]:
        message = "the daemon's port has changed since this session began"
    else:
        message = "this session was started from another place"
    raise NotAuthenticated(message, PROXY_HINT)
