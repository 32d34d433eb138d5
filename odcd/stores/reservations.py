"""Reservations and dev servers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime, timedelta

from odcd.database.pool import Database
from odcd.records.dev_server import BoxKeys, IdleNotice, JupyterWish, Look, LookWish, Warned
from odcd.records.dispatch import Fact
from odcd.records.job import Identity
from odcd.stores.accounts import actor_of


class ReservationStore:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def reservations(
        self, who: Identity, users: Sequence[str] | None, statuses: Sequence[str] | None,
        positions: str, now: datetime, *, ended: bool, limit: int,
    ) -> str:  # fmt: skip
        """Return a JSON array, newest first. positions: from queue_positions(). users: None: the
        caller's own; "all": every user's. statuses: None: those in progress, and those that ended
        within the last hour; ended: all."""
        return await self._db.fetchval(
            "select odc.list_reservations(p_actor => $1::jsonb, p_users => $2, p_statuses => $3, "
            "p_ended => $4, p_limit => $5, p_positions => $6::jsonb, p_now => $7)",
            actor_of(who), users, statuses, ended, limit, positions, now,
        )  # fmt: skip

    async def queue_positions(self, now: datetime) -> str:
        """The queue positions of waiting reservations, as JSON."""
        return await self._db.fetchval("select odc.queue_positions(p_now => $1)", now)

    async def reservation(self, who: Identity, job_id: int, positions: str, now: datetime) -> str:
        return await self._db.fetchval(
            "select odc.show_reservation(p_actor => $1::jsonb, p_job_id => $2, "
            "p_positions => $3::jsonb, p_now => $4)",
            actor_of(who), job_id, positions, now,
        )  # fmt: skip

    async def own_reservation(self, who: Identity, job_id: int) -> None:
        """Check that the user may act on this reservation. Raises UnknownJob, NotOwner."""
        await self._db.fetchval(
            "select odc._own_reservation(p_actor => $1::jsonb, p_job_id => $2) is null",
            actor_of(who), job_id,
        )  # fmt: skip

    async def github_user(self, uid: int) -> str | None:
        """The GitHub name that the user set, or None."""
        return await self._db.fetchval(
            "select github_user from odc.user_setting where uid = $1", uid
        )

    async def set_github_user(self, who: Identity, name: str | None, now: datetime) -> str:
        return await self._db.fetchval(
            "select odc.set_github_user(p_actor => $1::jsonb, p_github_user => $2, p_now => $3)",
            actor_of(who), name, now,
        )  # fmt: skip

    async def share_reservation(
        self, who: Identity, job_id: int, github_user: str, keys: Sequence[str], now: datetime
    ) -> tuple[int | None, list[str]]:
        """Grant another user's keys access. Return the attempt to update, and all of its keys.
        Raises UnknownJob, NotOwner, WrongState."""
        told = json.loads(
            await self._db.fetchval(
                "select odc.share_reservation(p_actor => $1::jsonb, p_job_id => $2, "
                "p_github_user => $3, p_keys => $4, p_now => $5)",
                actor_of(who), job_id, github_user, list(keys), now,
            )
        )  # fmt: skip
        return told["attempt"], told["keys"]

    async def set_jupyter(self, who: Identity, job_id: int, on: bool, now: datetime) -> None:
        """Set whether Jupyter Lab should run; the leader carries it out. Raises UnknownJob,
        NotOwner, WrongState."""
        await self._db.fetchval(
            "select odc.set_jupyter(p_actor => $1::jsonb, p_job_id => $2, p_on => $3, "
            "p_now => $4) is null",
            actor_of(who), job_id, on, now,
        )  # fmt: skip

    async def due_jupyters(self, term: int) -> list[JupyterWish]:
        """Raises LeadershipLost."""
        rows = await self._db.fetch(
            "select job_id, attempt, wanted from odc.due_jupyters(p_term => $1)", term
        )
        return [JupyterWish(**dict(row)) for row in rows]

    async def note_jupyter(
        self, term: int, wish: JupyterWish, error: str | None, now: datetime
    ) -> None:
        """error: why the change failed. Raises LeadershipLost."""
        await self._db.fetchval(
            "select odc.note_jupyter(p_term => $1, p_job_id => $2, p_attempt => $3, "
            "p_running => $4, p_error => $5, p_now => $6) is null",
            term, wish.job_id, wish.attempt, wish.wanted, error, now,
        )  # fmt: skip

    async def due_looks(self, term: int) -> list[LookWish]:
        """Raises LeadershipLost."""
        rows = await self._db.fetch("select job_id, attempt from odc.due_looks(p_term => $1)", term)
        return [LookWish(**dict(row)) for row in rows]

    async def note_look(
        self, term: int, wish: LookWish, look: Look, every: timedelta, now: datetime
    ) -> IdleNotice | None:
        """Record a check, and return the notice to send to the user, if any. Raises
        LeadershipLost."""
        row = await self._db.fetchrow(
            "select idle_s, release_at from odc.note_look(p_term => $1, p_job_id => $2, "
            "p_attempt => $3, p_sessions => $4, p_gpu_percent => $5, p_cpu_s => $6, "
            "p_every => $7, p_now => $8)",
            term, wish.job_id, wish.attempt, look.sessions, look.gpu_percent, look.cpu_s, every,
            now,
        )  # fmt: skip
        return IdleNotice(**dict(row)) if row else None

    async def note_idle_told(
        self, term: int, wish: LookWish, told: IdleNotice, now: datetime
    ) -> None:
        """Raises LeadershipLost."""
        await self._db.fetchval(
            "select odc.note_idle_told(p_term => $1, p_job_id => $2, p_attempt => $3, "
            "p_idle_s => $4, p_release_at => $5, p_now => $6) is null",
            term, wish.job_id, wish.attempt, told.idle_s, told.release_at, now,
        )  # fmt: skip

    async def enter_reservation(
        self, who: Identity, job_id: int, rank: int, way: str = "ssh"
    ) -> int:  # fmt: skip
        """The attempt that this user may reach by ssh or jupyter. Raises UnknownJob, NotOwner,
        WrongState, BadRequest."""
        return await self._db.fetchval(
            "select odc.enter_reservation(p_actor => $1::jsonb, p_job_id => $2, p_rank => $3, "
            "p_way => $4)",
            actor_of(who), job_id, rank, way,
        )  # fmt: skip

    async def extend_reservation(
        self, who: Identity, job_id: int, seconds: int, now: datetime, *, dry_run: bool
    ) -> str:
        """dry_run: only return what it would delay. Raises WrongState when it cannot be
        extended."""
        return await self._db.fetchval(
            "select odc.extend_reservation(p_actor => $1::jsonb, p_job_id => $2, "
            "p_seconds => $3, p_now => $4, p_dry_run => $5)",
            actor_of(who), job_id, seconds, now, dry_run,
        )  # fmt: skip

    async def availability(self, now: datetime) -> str:
        """The availability of each GPU type that nodes have, as a JSON array."""
        return await self._db.fetchval("select odc.list_availability(p_now => $1)", now)

    async def cluster(self, now: datetime) -> str:
        """How much of the cluster is in use, as JSON."""
        return await self._db.fetchval("select odc.count_cluster(p_now => $1)", now)

    async def warnings(self, term: int, now: datetime) -> list[Warned]:
        """The notices due to users of dev servers now; each is due until warned() records it."""
        rows = await self._db.fetch(
            "select job_id, attempt, name, minutes, expires_at, extensible, shared_home "
            "from odc.take_warnings(p_term => $1, p_now => $2)",
            term, now,
        )  # fmt: skip
        return [Warned(**dict(row)) for row in rows]

    async def warned(
        self, term: int, warning: Warned, trouble: str | None, now: datetime
    ) -> None:  # fmt: skip
        """trouble: the part that was not delivered, and why."""
        await self._db.fetchval(
            "select odc.note_warned(p_term => $1, p_job_id => $2, p_expires_at => $3, "
            "p_minutes => $4, p_trouble => $5, p_now => $6)",
            term, warning.job_id, warning.expires_at, warning.minutes, trouble, now,
        )  # fmt: skip

    async def next_warning(self, now: datetime) -> datetime | None:
        return await self._db.fetchval("select odc.next_warning(p_now => $1)", now)

    async def keep_box_keys(
        self, term: int, job_id: int, made: BoxKeys, now: datetime
    ) -> BoxKeys | None:
        """Store the keys of a dev server unless it has some, and return the stored ones. None: it
        has ended. Raises LeadershipLost."""
        row = await self._db.fetchrow(
            "select host_key, host_public, gang_key, gang_public, jupyter_token "
            "from odc.keep_box_key(p_term => $1, p_job_id => $2, p_host_key => $3, "
            "p_host_public => $4, p_gang_key => $5, p_gang_public => $6, p_jupyter_token => $7, "
            "p_now => $8)",
            term, job_id, made.host_key, made.host_public, made.gang_key, made.gang_public,
            made.jupyter_token, now,
        )  # fmt: skip
        return BoxKeys(**dict(row)) if row else None

    async def note_box_port(
        self, term: int, job_id: int, attempt: int, port: int, addresses: Sequence[str]
    ) -> None:
        """Record a node port by which the dev server can also be reached. Raises LeadershipLost."""
        await self._db.fetchval(
            "select odc.note_box_port(p_term => $1, p_job_id => $2, p_attempt => $3, "
            "p_port => $4, p_addresses => $5) is null",
            term, job_id, attempt, port, list(addresses),
        )  # fmt: skip

    async def record_progress(self, term: int, facts: Sequence[Fact], now: datetime) -> None:
        """Record the phases of dev servers' members, and which of their containers restarted."""
        await self._db.fetchval(
            "select odc.record_progress(p_term => $1, p_job_ids => $2, p_attempts => $3, "
            "p_ranks => $4, p_kinds => $5, p_ats => $6, p_details => $7, p_now => $8)",
            term,
            [f.job_id for f in facts], [f.attempt for f in facts], [f.rank for f in facts],
            [f.kind for f in facts], [f.at for f in facts], [f.detail for f in facts], now,
        )  # fmt: skip
