"""Plans: the current one, past ones, and previews of jobs not submitted yet."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from odcd.database.pool import Database
from odcd.records.job import Identity
from odcd.stores.actor import actor_of


class PlanStore:
    def __init__(self, database: Database) -> None:
        self._db = database

    async def get(self, now: datetime, as_of: datetime | None = None) -> str:
        """The planned starts, earliest first."""
        if as_of is not None:
            return await self._db.fetchval(
                "select odc.past_plan(p_as_of => $1, p_now => $2)", as_of, now
            )
        return await self._db.fetchval("select odc.list_plan(p_now => $1)", now)

    async def get_gantt(
        self, types: Sequence[str] | None, nodes: Sequence[str] | None, offset: int, limit: int,
        stretch: tuple[datetime, datetime], who: Identity | None, now: datetime,
    ) -> str:  # fmt: skip
        """JSON: the running jobs, plans and bookings on some nodes within a time range. who: sees
        the names of bookings that this user may see; None: a view for all users."""
        return await self._db.fetchval(
            "select odc.show_gantt(p_types => $1, p_nodes => $2, p_offset => $3, p_limit => $4, "
            "p_from => $5, p_to => $6, p_now => $7, p_actor => $8::jsonb)",
            types, nodes, offset, limit, *stretch, now, None if who is None else actor_of(who),
        )  # fmt: skip

    async def preview(self, jobs: str, now: datetime) -> str:
        """Where and when each of these jobs (from a submit() request, as JSON) would start if it
        were submitted alone now, and which jobs it would delay."""
        return await self._db.fetchval(
            "select odc.preview_jobs(p_asks => $1::jsonb, p_now => $2)", jobs, now
        )

    async def diff(self, before: int | datetime, after: int | datetime) -> str:
        """The jobs whose planned starts moved between two passes, and why. A pass is given by
        number, or by a time: the last pass up to then. Raises UnknownPass."""
        return await self._db.fetchval(
            "select odc.diff_plans(p_from => $1, p_from_at => $2, p_to => $3, p_to_at => $4)",
            *_pass(before), *_pass(after),
        )  # fmt: skip

    async def replay(self, pass_id: int, policy: str | None, plan_depth: int | None) -> str:
        """Replay a pass with the data it read, and compare its decisions with the original ones."""
        return await self._db.fetchval(
            "select odc.replay_pass(p_pass_id => $1, p_policy => $2, p_plan_depth => $3)",
            pass_id, policy, plan_depth,
        )  # fmt: skip


def _pass(named: int | datetime) -> tuple[int | None, datetime | None]:
    return (None, named) if isinstance(named, datetime) else (named, None)
