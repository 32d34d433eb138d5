"""Reservations, in the role of users."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime

from odcd.database.pool import Database
from odcd.records.job import Identity
from odcd.stores.actor import actor_of


class ReservationStore:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def list(
        self, who: Identity, users: Sequence[str] | None, statuses: Sequence[str] | None,
        positions: str, now: datetime, *, ended: bool, limit: int,
    ) -> str:  # fmt: skip
        """Return a JSON array, newest first. positions: from get_positions(). users: None: the
        caller's own; "all": every user's. statuses: None: those in progress, and those that ended
        within the last hour; ended: all."""
        return await self._db.fetchval(
            "select odc.list_reservations(p_actor => $1::jsonb, p_users => $2, p_statuses => $3, "
            "p_ended => $4, p_limit => $5, p_positions => $6::jsonb, p_now => $7)",
            actor_of(who), users, statuses, ended, limit, positions, now,
        )  # fmt: skip

    async def get_positions(self, now: datetime) -> str:
        """The queue positions of waiting reservations, as JSON."""
        return await self._db.fetchval("select odc.queue_positions(p_now => $1)", now)

    async def get(self, who: Identity, job_id: int, positions: str, now: datetime) -> str:
        return await self._db.fetchval(
            "select odc.show_reservation(p_actor => $1::jsonb, p_job_id => $2, "
            "p_positions => $3::jsonb, p_now => $4)",
            actor_of(who), job_id, positions, now,
        )  # fmt: skip

    async def check_owner(self, who: Identity, job_id: int) -> None:
        """Check that the user may act on this reservation. Raises UnknownJob, NotOwner."""
        await self._db.fetchval(
            "select odc._own_reservation(p_actor => $1::jsonb, p_job_id => $2) is null",
            actor_of(who), job_id,
        )  # fmt: skip

    async def share(
        self, who: Identity, job_id: int, github_user: str, keys: Sequence[str], now: datetime
    ) -> tuple[int | None, list[str]]:
        """Grant another user's keys access. Return the attempt to update, and all of its keys.
        Raises UnknownJob, NotOwner, WrongState."""
        row = json.loads(
            await self._db.fetchval(
                "select odc.share_reservation(p_actor => $1::jsonb, p_job_id => $2, "
                "p_github_user => $3, p_keys => $4, p_now => $5)",
                actor_of(who), job_id, github_user, list(keys), now,
            )
        )  # fmt: skip
        return row["attempt"], row["keys"]

    async def set_jupyter(self, who: Identity, job_id: int, on: bool, now: datetime) -> None:
        """Set whether Jupyter Lab should run; the leader carries it out. Raises UnknownJob,
        NotOwner, WrongState."""
        await self._db.fetchval(
            "select odc.set_jupyter(p_actor => $1::jsonb, p_job_id => $2, p_on => $3, "
            "p_now => $4) is null",
            actor_of(who), job_id, on, now,
        )  # fmt: skip

    async def enter(
        self, who: Identity, job_id: int, rank: int, way: str = "ssh"
    ) -> int:  # fmt: skip
        """The attempt that this user may reach by ssh or jupyter. Raises UnknownJob, NotOwner,
        WrongState, BadRequest."""
        return await self._db.fetchval(
            "select odc.enter_reservation(p_actor => $1::jsonb, p_job_id => $2, p_rank => $3, "
            "p_way => $4)",
            actor_of(who), job_id, rank, way,
        )  # fmt: skip

    async def extend(
        self, who: Identity, job_id: int, seconds: int, now: datetime, *, dry_run: bool
    ) -> str:
        """dry_run: only return what it would delay. Raises WrongState when it cannot be
        extended."""
        return await self._db.fetchval(
            "select odc.extend_reservation(p_actor => $1::jsonb, p_job_id => $2, "
            "p_seconds => $3, p_now => $4, p_dry_run => $5)",
            actor_of(who), job_id, seconds, now, dry_run,
        )  # fmt: skip
