"""Queries of the web page, with its tickets and sessions."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from odcd.database.pool import Database
from odcd.records.api_keys import NewKey
from odcd.records.job import Identity


class MappedNode(NamedTuple):
    """body: JSON, as returned by odc.map_nodes."""

    name: str
    gpu_type: str
    body: str


class QueuePage(NamedTuple):
    """jobs: a JSON array; places: the queue place of each job, or None. The next page starts after
    place, or after a cursor of Store.list_jobs; both None: this is the last page."""

    jobs: str
    places: Sequence[int | None]
    place: int | None
    after: int | None


class End(NamedTuple):
    """The end of a running job. likely: the predicted end, None if unknown; limit: the end of its
    time limit, None without one."""

    likely: datetime | None
    limit: datetime | None


class PageKey(NamedTuple):
    """The user of a ticket or session. peer_uid: the uid whose sockets may use the ticket; place:
    of the session. as_peer: requested on the socket, not with an API key."""

    user_name: str
    uid: int
    gid: int
    peer_uid: int | None
    place: str | None
    as_peer: bool


class PageStore:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def map_nodes(self, now: datetime) -> list[MappedNode]:
        """The users of each GPU, sorted by type and node name."""
        rows = await self._db.fetch(
            "select name, gpu_type, body from odc.map_nodes(p_now => $1)", now
        )
        return [MappedNode(row["name"], row["gpu_type"], row["body"]) for row in rows]

    async def queue(
        self, filters: Mapping[str, object], now: datetime, *, place: int | None, after: int | None,
        limit: int, fields: Sequence[str],
    ) -> QueuePage:  # fmt: skip
        """Live jobs: running ones, then pending ones by place, then those without a place. filters:
        the same as for Store.list_jobs."""
        row = await self._db.fetchrow(
            "select jobs, places, next_place, next from odc.list_queue(p_filters => $1::jsonb, "
            "p_place => $2, p_after => $3, p_limit => $4, p_fields => $5, p_now => $6)",
            json.dumps(filters), place, after, limit, list(fields), now,
        )  # fmt: skip
        return QueuePage(row["jobs"], row["places"] or [], row["next_place"], row["next"])

    async def gantt(
        self, types: Sequence[str] | None, nodes: Sequence[str] | None, offset: int, limit: int,
        stretch: tuple[datetime, datetime], now: datetime,
    ) -> str:  # fmt: skip
        """JSON: the running jobs, plans and bookings on some nodes within a time range."""
        return await self._db.fetchval(
            "select odc.show_gantt(p_types => $1, p_nodes => $2, p_offset => $3, p_limit => $4, "
            "p_from => $5, p_to => $6, p_now => $7)",
            types, nodes, offset, limit, *stretch, now,
        )  # fmt: skip

    async def job_events(self, job_id: int, limit: int) -> str:
        """A JSON array of the last events of one job, oldest first."""
        return await self._db.fetchval(
            "select odc.list_job_events(p_job_id => $1, p_limit => $2)", job_id, limit
        )

    async def attempts(self, job_id: int) -> str:
        """A JSON array of a job's ended attempts."""
        return await self._db.fetchval("select odc.show_attempts(p_job_id => $1)", job_id)

    async def places(self, job_ids: Sequence[int]) -> dict[int, int]:
        """The queue places of the jobs that have one."""
        rows = await self._db.fetch(
            "select job_id, place from odc.list_places(p_job_ids => $1)", list(job_ids)
        )
        return {row["job_id"]: row["place"] for row in rows}

    async def end_of(self, job_id: int, now: datetime) -> End | None:
        """When the job ends; None: it is not running."""
        rows = await self._db.fetch(
            "select likely_end_at, ends_at from odc.show_end(p_job_id => $1, p_now => $2)",
            job_id, now,
        )  # fmt: skip
        return End(rows[0]["likely_end_at"], rows[0]["ends_at"]) if rows else None

    async def make_ticket(
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

    async def begin_session(
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

    async def page_key(self, digest: str, now: datetime) -> PageKey | None:
        """The user of a ticket or session; None: it is no longer valid."""
        row = await self._db.fetchrow(
            "select user_name, uid, gid, peer_uid, place, as_peer "
            "from odc.use_page_key(p_digest => $1, p_now => $2)",
            digest, now,
        )  # fmt: skip
        return PageKey(**dict(row)) if row else None
