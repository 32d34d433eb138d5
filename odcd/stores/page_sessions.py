"""Tickets and sessions of the web page."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from odcd.database.pool import Database
from odcd.records.api_keys import NewKey
from odcd.records.job import Identity


class PageKey(NamedTuple):
    """The user of a ticket or session. peer_uid: the uid whose sockets may use the ticket; place:
    of the session. as_peer: requested on the socket, not with an API key."""

    user_name: str
    uid: int
    gid: int
    peer_uid: int | None
    place: str | None
    as_peer: bool


class PageSessionStore:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def create_ticket(
        self, who: Identity, ticket: NewKey, key: str | None, now: datetime, expires_at: datetime,
        peer_uid: int | None = None,
    ) -> bool:  # fmt: skip
        """key: the digest of the API key used; None: requested on the socket. peer_uid: the uid
        whose sockets on the daemon's machine may use the ticket; None: the first to use it. Return
        False if the key has ended."""
        return await self._db.fetchval(
            "select odc.make_page_ticket(p_digest => $1, p_prefix => $2, p_user => $3, "
            "p_uid => $4, p_gid => $5, p_key => $6, p_now => $7, p_expires_at => $8, "
            "p_peer_uid => $9)",
            ticket.digest, ticket.prefix, who.user, who.uid, who.gid, key, now, expires_at,
            peer_uid,
        )  # fmt: skip

    async def create(
        self, ticket: str, session: NewKey, now: datetime, expires_at: datetime,
        peer_uid: int | None, place: str,
    ) -> datetime | None:  # fmt: skip
        """Return when the session expires, or None if the ticket (a digest) is no longer valid or
        not valid for that uid. peer_uid, place: see odcd.page.places."""
        return await self._db.fetchval(
            "select odc.begin_page_session(p_ticket => $1, p_digest => $2, p_prefix => $3, "
            "p_now => $4, p_expires_at => $5, p_peer_uid => $6, p_place => $7)",
            ticket, session.digest, session.prefix, now, expires_at, peer_uid, place,
        )  # fmt: skip

    async def get_user(self, digest: str, now: datetime) -> PageKey | None:
        """The user of a ticket or session; None: it is no longer valid."""
        row = await self._db.fetchrow(
            "select user_name, uid, gid, peer_uid, place, as_peer "
            "from odc.use_page_key(p_digest => $1, p_now => $2)",
            digest, now,
        )  # fmt: skip
        return PageKey(**dict(row)) if row else None
